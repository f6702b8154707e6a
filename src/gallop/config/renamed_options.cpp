#include "gallop/config/renamed_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/config/field_text.h"

namespace gallop::config {

namespace {

// The current name of `name` in the map or list at `pattern`, or null if it is unchanged.
const char* current_name(const std::string& pattern, const std::string& name) {
  for (const RenamedOption& one : renamed_options()) {
    if (pattern == one.parent && name == one.old_name) return one.name;
  }
  return nullptr;
}

struct Place {
  std::string path;     ///< As written.
  std::string current;  ///< With current names.
  std::string pattern;  ///< With '*' for list indices.

  Place at(const std::string& written, const std::string& name) const {
    return {join_key(path, written), join_key(current, name), join_key(pattern, name)};
  }
  Place item(size_t index) const {
    const std::string number = std::to_string(index);
    return {join_key(path, number), join_key(current, number), join_key(pattern, "*")};
  }
};

class Renamer {
 public:
  explicit Renamer(Problems& problems) : problems_(problems) {}

  void rename(Node& node, const Place& place) {
    for (size_t i = 0; i < node.items.size(); ++i) rename_item(node.items[i], place.item(i));
    for (Node::Entry& entry : node.entries) {
      const std::string written = entry.key;
      if (const char* const name = current_name(place.pattern, written)) {
        note(entry.origin, place.at(written, name), node.find(name) != nullptr);
        entry.key = name;
      }
      rename(entry.value, place.at(written, entry.key));
    }
  }

  std::vector<OldName> take() { return std::move(found_); }

 private:
  // A family member without options may be a bare name.
  void rename_item(Node& item, const Place& place) {
    if (item.kind != Node::Kind::kScalar) return rename(item, place);
    if (const char* const name = current_name(place.pattern, item.scalar)) {
      note(item.origin, place.at(item.scalar, name), /*has_both=*/false);
      item.scalar = name;
    }
  }

  void note(const Origin& origin, const Place& place, bool has_both) {
    found_.push_back({origin, place.path, place.current});
    if (has_both) add_has_both(found_.back(), problems_);
  }

  Problems& problems_;
  std::vector<OldName> found_;
};

}  // namespace

const std::vector<RenamedOption>& renamed_options() {
  static const std::vector<RenamedOption> kRenamed = {
      {"", "vary", "schedules"},
      {"data", "batch", "batch_size"},
      {"data.augment.*", "flip", "random-horizontal-flip"},
      {"data.augment.*", "crop", "random-crop"},
      {"optimizer", "wrap", "wrappers"},
      {"track", "samples", "log_samples"},
      {"train", "accumulate", "gradient_accumulation"},
      {"train", "clip", "clip_grad_norm"},
      {"train", "recompute", "activation_checkpointing"},
  };
  return kRenamed;
}

std::string current_path(const std::string& path) {
  Place place;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (const auto index = parse_number<size_t>(part)) {
      place = place.item(*index);
    } else {
      const char* const name = current_name(place.pattern, part);
      place = place.at(part, name != nullptr ? name : part);
    }
  }
  return place.current;
}

std::string OldName::describe() const {
  return fmt::format("{}: {} is deprecated; write {}", origin.describe(), path, current_path);
}

void add_has_both(const OldName& one, Problems& problems) {
  problems.add(one.origin, one.path,
               fmt::format("this is the old name of {}, which is given as well; remove one of them",
                           one.current_path));
}

std::vector<OldName> rename_old_options(Node& root, Problems& problems) {
  Renamer renamer(problems);
  renamer.rename(root, {});
  return renamer.take();
}

}  // namespace gallop::config
