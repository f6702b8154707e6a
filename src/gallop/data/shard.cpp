#include "gallop/data/shard.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/ignored_names.h"
#include "gallop/data/tar_links.h"

namespace gallop::data {

namespace {

struct OrderedImage {
  ShardImage image;
  size_t order;  // Position of the member in the archive.
};

// Members with the same key.
struct Group {
  std::vector<OrderedImage> images;
  std::vector<std::string> dotted{};  // Fields such as "left.jpg".
  std::string name;
  int32_t label = -1;
  bool is_broken = false;  // Already counted as skipped.
};

// Splits a member's name like the webdataset library, by ^((?:.*/|)[^.]+)[.]([^/]*)$, into key and
// lower-case field. Returns false if it does not match.
bool split_name(const std::string& name, std::string& key, std::string& field) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base) return false;
  key = name.substr(0, dot);
  field = name.substr(dot + 1);
  for (char& c : field) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return true;
}

// "__index__" and the content of such folders describe a shard; webdataset skips them too.
bool is_metadata(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

std::optional<int32_t> read_label(const FileDescriptor& file, const fs::path& path,
                                  const TarMember& member) {
  constexpr int64_t kLongest = 32;
  char text[kLongest];
  if (member.size > kLongest || !read_exactly(file, path, member.offset, text, member.size)) {
    return std::nullopt;
  }
  std::string_view digits(text, static_cast<size_t>(member.size));
  constexpr std::string_view kSpaces = " \t\r\n";
  digits.remove_prefix(std::min(digits.find_first_not_of(kSpaces), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(kSpaces) + 1);
  const auto label = parse_number<int32_t>(digits);
  return label && *label >= 0 && *label < kMaxClasses ? label : std::nullopt;
}

// Collects members and groups them into samples.
class Grouping {
 public:
  Grouping(const FileDescriptor& file, const fs::path& path) : file_(file), path_(path) {}

  void add(TarEntry entry) {
    const std::string& name = entry.member.name;
    if (has_ignored_name(name)) return hide(name);
    std::string key, field;
    const bool has_field = split_name(name, key, field);
    if (is_metadata(name) || !has_field) {
      // A link without an extension may stand for a folder of images.
      const bool is_lost = !entry.problem.empty() && entry.through_link && !is_metadata(name);
      if (is_lost) skip("link that leads to no member", name, entry.problem);
      if (!is_lost) ++shard_.ignored;
      return;
    }
    const bool is_image = field.find('.') == std::string::npos && has_image_ending(name);
    if (is_image) {
      add_image(group_of(key), std::move(entry));
    } else if (field == "cls") {
      has_labels_ = true;
      add_label(group_of(key), entry);
    } else if (has_image_ending(name)) {
      dotted_.push_back({std::move(entry), key, field});
    } else if (field.ends_with(".cls")) {
      skip("name with several dots", name,
           fmt::format("is the field '{}' of the sample '{}', as a field begins behind the first "
                       "dot; rename the members so that the label is KEY.cls",
                       printable(field), printable(key)));
      has_labels_ = true;
    } else if (is_unread_image(name)) {
      unread_.push_back({std::move(entry), key, field});
    } else {
      ++shard_.ignored;
    }
  }

  Shard finish(std::string damage) {
    add_dotted();
    add_unread();
    for (Group& group : groups_) {
      // The rest of a sample may come after the damaged position of the archive.
      const bool is_complete = group.label >= 0 && !group.images.empty();
      if (group.is_broken || (!damage.empty() && has_labels_ && !is_complete)) continue;
      if (group.label >= 0 && !is_labeled_well(group)) continue;
      for (OrderedImage& one : group.images) {
        one.image.label = group.label;
        images_.push_back(std::move(one));
      }
    }
    std::stable_sort(
        images_.begin(), images_.end(),
        [](const OrderedImage& a, const OrderedImage& b) { return a.order < b.order; });
    for (OrderedImage& one : images_) shard_.images.push_back(std::move(one.image));
    shard_.damage = std::move(damage);
    return std::move(shard_);
  }

 private:
  struct OtherField {
    TarEntry entry;
    std::string key, field;
  };

  static OrderedImage as_image(TarEntry entry) {
    return {.image = {.name = std::move(entry.member.name),
                      .offset = entry.member.offset,
                      .size = entry.member.size},
            .order = entry.order};
  }

  Group& group_of(const std::string& key) {
    const auto [at, is_new] = places_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({.images = {}, .name = key, .label = -1});
    return groups_[at->second];
  }

  void hide(const std::string& name) {
    if (!has_image_ending(name)) {
      ++shard_.ignored;
    } else if (shard_.hidden++ == 0) {
      shard_.first_hidden = name;
    }
  }

  void add_image(Group& group, TarEntry entry) {
    if (!entry.problem.empty()) return skip_member(group, entry);
    group.images.push_back(as_image(std::move(entry)));
  }

  void add_label(Group& group, const TarEntry& entry) {
    const std::string& name = entry.member.name;
    if (!entry.problem.empty()) return skip_member(group, entry);
    if (group.label >= 0) {
      skip("label given twice", name, "the archive has this label twice");
      group.is_broken = true;
      return;
    }
    const auto label = read_label(file_, path_, entry.member);
    if (label) {
      group.label = *label;
      return;
    }
    skip("invalid label", name,
         fmt::format("a label is expected to be one number from 0 to {}", kMaxClasses - 1));
    group.is_broken = true;
  }

  void skip_member(Group& group, const TarEntry& entry) {
    skip(entry.through_link ? "link that leads to no member" : "member that is not a plain file",
         entry.member.name, entry.problem);
    group.is_broken = true;
  }

  // "cat/7.small.jpg" is an image in a class folder, but next to labels it is another field.
  void add_dotted() {
    for (OtherField& one : dotted_) {
      const auto group = places_.find(one.key);
      if (has_labels_ && group != places_.end()) {
        groups_[group->second].dotted.push_back(printable(one.field));
        ++shard_.ignored;
      } else if (has_labels_) {
        skip("image without a label", one.entry.member.name,
             fmt::format("is the field '{}' of the sample '{}', which has no .cls, though others "
                         "have",
                         printable(one.field), printable(one.key)));
      } else if (!one.entry.problem.empty()) {
        skip("link that leads to no member", one.entry.member.name, one.entry.problem);
      } else {
        images_.push_back(as_image(std::move(one.entry)));
      }
    }
  }

  // If a sample has another image, these are other fields.
  void add_unread() {
    for (const OtherField& one : unread_) {
      const auto group = places_.find(one.key);
      if (group != places_.end()) {
        groups_[group->second].dotted.push_back(printable(one.field));
        ++shard_.ignored;
      } else {
        skip("image of another format", one.entry.member.name,
             fmt::format("is a .{} file, where {} are read", printable(one.field),
                         image_endings("and")));
      }
    }
  }

  bool is_labeled_well(const Group& group) {
    if (group.images.size() == 1) return true;
    if (group.images.size() > 1) {
      skip("several images for one label", group.name,
           fmt::format("has {} images and one .cls", group.images.size()));
      return false;
    }
    const std::string others =
        group.dotted.empty() ? std::string()
                             : fmt::format(" (its fields are {})", fmt::join(group.dotted, ", "));
    skip("label without an image", group.name,
         "has a .cls, but neither " + image_endings("nor") + others);
    return false;
  }

  void skip(const std::string& reason, const std::string& member, const std::string& what) {
    shard_.skips.add(reason,
                     fmt::format("{}: {}: {}", printable(path_.string()), printable(member), what));
  }

  const FileDescriptor& file_;
  const fs::path& path_;
  Shard shard_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<OtherField> dotted_, unread_;
  std::vector<OrderedImage> images_;
  bool has_labels_ = false;
};

}  // namespace

Shard read_shard(const FileDescriptor& file, const fs::path& path, bool tolerate_damage) {
  TarReader reader(file, path);
  std::string damage;
  const auto next = [&]() -> std::optional<TarMember> {
    try {
      return reader.next();
    } catch (const DataError& error) {
      if (!tolerate_damage) throw;
      damage = error.what();
      return std::nullopt;
    }
  };
  std::vector<TarMember> members;
  while (auto member = next()) members.push_back(std::move(*member));
  Grouping grouping(file, path);
  for (TarEntry& entry : follow_links(std::move(members), path.string())) {
    grouping.add(std::move(entry));
  }
  return grouping.finish(std::move(damage));
}

}  // namespace gallop::data
