#include "gallop/data/shard_paths.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/piped_shards.h"

namespace gallop::data {

namespace {

constexpr size_t kMaxNames = 100'000;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Expands the content of a pair of braces: "0000..0009" or "a,b,c".
std::vector<std::string> choices(std::string_view inside, const std::string& pattern) {
  std::vector<std::string> names;
  const size_t dots = inside.find("..");
  if (dots != std::string_view::npos) {
    const std::string_view first = inside.substr(0, dots), last = inside.substr(dots + 2);
    if (!is_number(first) || !is_number(last)) {
      throw DataError(fmt::format("data.path: {}: '{{{}}}' is not a range of numbers",
                                  printable(pattern), printable(inside)));
    }
    const int from = std::stoi(std::string(first)), to = std::stoi(std::string(last));
    if (to < from || static_cast<size_t>(to - from) >= kMaxNames) {
      throw DataError(fmt::format("data.path: {}: '{{{}}}' stands for none or for over {} names",
                                  printable(pattern), printable(inside), format_count(kMaxNames)));
    }
    for (int i = from; i <= to; ++i) names.push_back(fmt::format("{:0{}}", i, first.size()));
    return names;
  }
  for (size_t at = 0; at <= inside.size();) {
    const size_t end = std::min(inside.find(',', at), inside.size());
    names.emplace_back(inside.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::vector<fs::path> tar_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    // Dangling links are included; opening them is an error.
    if (name.ends_with(".tar") && !name.starts_with('.') && !entry.is_directory(ignored)) {
      files.push_back(entry.path());
    }
  }
  if (error) {
    throw DataError(
        fmt::format("{}: cannot read: {}", printable(folder.string()), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The split named by a word of a file name: "imagenet-train-0017.tar".
std::optional<Part> part_in_name(const fs::path& path) {
  std::optional<Part> part;
  std::string word;
  for (const char c : path.filename().string() + ".") {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      word += c;
      continue;
    }
    const auto found = part_of_word(word);
    if (found && part && *found != *part) return std::nullopt;
    if (found) part = found;
    word.clear();
  }
  return part;
}

// Names are used if one of them says train; otherwise all shards are for training.
void mark_parts_by_name(std::vector<ShardPath>& shards) {
  bool has_train = false;
  for (const ShardPath& shard : shards) has_train |= part_in_name(shard.path) == Part::kTrain;
  if (!has_train) return;
  for (ShardPath& shard : shards) {
    const auto part = part_in_name(shard.path);
    if (!part) {
      throw DataError(fmt::format(
          "{}: its name specifies no split (train, val or test), though those of other shards do",
          printable(shard.path.string())));
    }
    shard.part = *part;
    shard.is_marked = true;
  }
}

// Finds shards in folders named after splits; false if no folder "train" has shards.
bool find_in_part_folders(const fs::path& root, std::vector<ShardPath>& shards) {
  for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
    std::string before;
    for (const std::string& word : part_words(part)) {
      std::error_code ignored;
      if (!fs::is_directory(root / word, ignored)) continue;
      const auto files = tar_files(root / word);
      if (files.empty()) continue;
      if (!before.empty()) {
        throw DataError(fmt::format("{}: {} and {} both name the {} split; keep one of them",
                                    printable(root.string()), before, word,
                                    kPartNames[static_cast<size_t>(part)]));
      }
      before = word;
      for (const fs::path& file : files) shards.push_back({file, part, true});
    }
    if (part == Part::kTrain && before.empty()) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  const size_t open = pattern.find('{');
  const size_t close = pattern.find('}');
  if (open == std::string::npos && close == std::string::npos) return {pattern};
  if (open == std::string::npos || close == std::string::npos || close < open) {
    throw DataError(fmt::format("data.path: {}: braces do not match", printable(pattern)));
  }
  const auto rest = expand_braces(pattern.substr(close + 1));
  const auto middle =
      choices(std::string_view(pattern).substr(open + 1, close - open - 1), pattern);
  if (rest.size() * middle.size() > kMaxNames) {
    throw DataError(fmt::format("data.path: {} stands for over {} names", printable(pattern),
                                format_count(kMaxNames)));
  }
  std::vector<std::string> names;
  for (const std::string& choice : middle) {
    for (const std::string& end : rest)
      names.push_back(pattern.substr(0, open).append(choice).append(end));
  }
  return names;
}

fs::path find_shards(const std::string& path, std::vector<ShardPath>& shards) {
  if (is_piped(path)) {
    const fs::path folder = user_cache_folder() / "piped-shards";
    for (const fs::path& file : fetch_shards(expand_braces(path), folder)) {
      shards.push_back({.path = file});
    }
    mark_parts_by_name(shards);
    return folder;
  }
  if (path.find_first_of("{}") != std::string::npos) {
    for (const std::string& name : expand_braces(path)) {
      shards.push_back({.path = find_user_data("tar", name)});
    }
    mark_parts_by_name(shards);
    return shards[0].path.parent_path();
  }
  fs::path root = find_user_data("tar", path);
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) {
    shards.push_back({.path = root});
    return root.parent_path();
  }
  if (find_in_part_folders(root, shards)) return root;
  for (const fs::path& file : tar_files(root)) shards.push_back({.path = file});
  if (shards.empty()) {
    throw DataError(fmt::format("{}: no .tar files in it", printable(root.string())));
  }
  mark_parts_by_name(shards);
  return root;
}

}  // namespace gallop::data
