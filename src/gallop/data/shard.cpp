#include "gallop/data/shard.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/image_file.h"
#include "gallop/data/tar_format.h"

namespace gallop::data {

namespace {

// Members with one name up to the first dot.
struct Group {
  std::vector<ShardImage> images;
  std::string name;
  int32_t label = -1;
};

// The name split at the first dot of its last part; false for hidden files and names without a dot.
bool split_name(const std::string& name, std::string& key, std::string& ending) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base) return false;
  key = name.substr(0, dot);
  ending = name.substr(dot + 1);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return true;
}

int32_t read_label(const FileDescriptor& file, const fs::path& path, const TarMember& member) {
  constexpr int64_t kLongest = 32;
  char text[kLongest];
  if (member.size <= kLongest && read_exactly(file, path, member.offset, text, member.size)) {
    std::string_view digits(text, static_cast<size_t>(member.size));
    constexpr std::string_view kSpaces = " \t\r\n";
    digits.remove_prefix(std::min(digits.find_first_not_of(kSpaces), digits.size()));
    digits = digits.substr(0, digits.find_last_not_of(kSpaces) + 1);
    const auto label = parse_number<int32_t>(digits);
    if (label && *label >= 0 && *label < kMaxClasses) return *label;
  }
  throw DataError(fmt::format("{}: {}: a label is expected to be one number from 0 to {}",
                              printable(path.string()), printable(member.name), kMaxClasses - 1));
}

// Takes members in and forms samples of them.
class Grouping {
 public:
  Grouping(const FileDescriptor& file, const fs::path& path) : file_(file), path_(path) {}

  void add(TarMember member) {
    std::string key, ending;
    if (!split_name(member.name, key, ending)) {
      ++shard_.ignored;
      return;
    }
    const bool is_image = ending == "jpg" || ending == "jpeg" || ending == "png";
    if (is_image) {
      group_of(key).images.push_back(as_image(std::move(member)));
    } else if (ending == "cls") {
      Group& group = group_of(key);
      if (group.label >= 0) fail(member.name, "the archive has this label twice");
      group.label = read_label(file_, path_, member);
      has_labels_ = true;
    } else if (has_image_ending(member.name)) {
      dotted_.push_back(as_image(std::move(member)));
    } else {
      ++shard_.ignored;
    }
  }

  Shard finish(std::string damage) {
    for (Group& group : groups_) {
      // The rest of a sample may lie behind the place where the archive is damaged.
      const bool is_complete = group.label >= 0 && !group.images.empty();
      if (!damage.empty() && has_labels_ && !is_complete) continue;
      if (group.label >= 0) check_labeled(group);
      for (ShardImage& image : group.images) {
        image.label = group.label;
        shard_.images.push_back(std::move(image));
      }
    }
    // "cat/7.small.jpg" is an image in a class folder, but beside labels it is some other datum.
    if (has_labels_) {
      shard_.ignored += static_cast<int64_t>(dotted_.size());
    } else {
      std::move(dotted_.begin(), dotted_.end(), std::back_inserter(shard_.images));
    }
    std::sort(shard_.images.begin(), shard_.images.end(),
              [](const ShardImage& a, const ShardImage& b) { return a.offset < b.offset; });
    shard_.damage = std::move(damage);
    return std::move(shard_);
  }

 private:
  static ShardImage as_image(TarMember member) {
    return {.name = std::move(member.name), .offset = member.offset, .size = member.size};
  }

  Group& group_of(const std::string& key) {
    const auto [at, is_new] = places_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({.images = {}, .name = key, .label = -1});
    return groups_[at->second];
  }

  void check_labeled(const Group& group) const {
    if (group.images.empty()) fail(group.name, "has a .cls, but neither .jpg, .jpeg nor .png");
    if (group.images.size() > 1) {
      fail(group.name, fmt::format("has {} images and one .cls", group.images.size()));
    }
  }

  [[noreturn]] void fail(const std::string& member, const std::string& why) const {
    throw DataError(fmt::format("{}: {}: {}", printable(path_.string()), printable(member), why));
  }

  const FileDescriptor& file_;
  const fs::path& path_;
  Shard shard_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<ShardImage> dotted_;
  bool has_labels_ = false;
};

}  // namespace

Shard read_shard(const FileDescriptor& file, const fs::path& path, bool tolerate_damage) {
  TarReader reader(file, path);
  Grouping grouping(file, path);
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
  while (auto member = next()) grouping.add(std::move(*member));
  return grouping.finish(std::move(damage));
}

}  // namespace gallop::data
