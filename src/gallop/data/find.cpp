#include "gallop/data/find.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/home.h"
#include "gallop/base/text.h"
#include "gallop/data/part.h"
#include "gallop/data/piped_shards.h"
#include "gallop/data/shard_paths.h"

namespace gallop::data {

namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string how_to_get(const Wanted& wanted) {
  std::string text = "; set data.path to where they are";
  if (!wanted.command.empty()) {
    const std::string folder = (user_cache_folder() / "datasets" / wanted.name).string();
    std::string command = wanted.command;
    constexpr std::string_view kToken = "FOLDER";
    for (size_t at; (at = command.find(kToken)) != std::string::npos;) {
      command.replace(at, kToken.size(), printable(folder));
    }
    text += fmt::format(", or get them with: {}", command);
  }
  return text;
}

}  // namespace

std::optional<Part> part_of_word(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
    for (const std::string& candidate : part_words(part)) {
      if (candidate == lower) return part;
    }
  }
  return std::nullopt;
}

std::vector<fs::path> data_folders() {
  std::vector<fs::path> folders;
  if (const char* own = std::getenv("GALLOP_DATA"); own != nullptr && *own != '\0') {
    folders.push_back(expand_home(own));
  }
  folders.push_back("/usr/share/datasets");
  folders.push_back(user_cache_folder() / "datasets");
  return folders;
}

namespace {

std::vector<fs::path> places_of(const fs::path& given) {
  std::vector<fs::path> places{given};
  if (given.is_relative()) {
    for (const fs::path& folder : data_folders()) places.push_back(folder / given);
  }
  return places;
}

}  // namespace

fs::path find_data_set(const Wanted& wanted, const std::string& path) {
  std::vector<fs::path> places;
  if (!path.empty()) {
    places.push_back(expand_home(path));
  } else {
    for (const fs::path& folder : data_folders()) places.push_back(folder / wanted.name);
  }
  std::vector<std::string> looked;
  for (const fs::path& place : places) {
    std::string missing = is_there(place) ? wanted.missing(place) : "does not exist";
    if (missing.empty()) return place;
    looked.push_back(fmt::format("{} ({})", printable(place.string()), missing));
  }
  throw DataError(fmt::format("the {} data are not in {}{}", wanted.name, join_names(looked),
                              how_to_get(wanted)));
}

fs::path find_user_data(const std::string& reader, const std::string& path) {
  if (path.empty()) {
    throw DataError(fmt::format("data.path is not set; the reader '{}' needs it", reader));
  }
  std::vector<std::string> looked;
  for (const fs::path& place : places_of(expand_home(path))) {
    if (is_there(place)) return place;
    looked.push_back(printable(place.string()));
  }
  throw DataError(fmt::format("data.path: none of these exists: {}", join_names(looked)));
}

namespace {

// PART.ending under any of the split's names; empty if there is none.
fs::path part_file(const fs::path& folder, Part part, const std::vector<std::string>& endings) {
  fs::path found;
  for (const std::string& word : part_words(part)) {
    for (const std::string& ending : endings) {
      const fs::path path = folder / (word + ending);
      std::error_code ignored;
      if (!fs::is_regular_file(path, ignored)) continue;
      if (!found.empty()) {
        throw DataError(fmt::format("{}: {} and {} both name the {} split; keep one of them",
                                    printable(folder.string()), found.filename().string(),
                                    path.filename().string(),
                                    kPartNames[static_cast<size_t>(part)]));
      }
      found = path;
    }
  }
  return found;
}

}  // namespace

std::array<fs::path, kParts> find_part_files(const std::string& reader, const std::string& path,
                                             const std::vector<std::string>& endings) {
  const fs::path root = find_user_data(reader, path);
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) return {root, {}, {}};
  std::array<fs::path, kParts> files;
  for (size_t i = 0; i < kParts; ++i) files[i] = part_file(root, static_cast<Part>(i), endings);
  if (!files[0].empty()) return files;
  std::vector<std::string> names;
  for (const std::string& ending : endings) names.push_back("train" + ending);
  throw DataError(fmt::format(
      "{}: has no {} (beside it, val{} and test{} are read); or set data.path to a file",
      printable(root.string()), join_names(names), endings.front(), endings.front()));
}

namespace {

// The shards of a split in a folder, by their number; empty if there are none.
std::vector<std::string> shards_in(const fs::path& folder, Part part,
                                   const std::vector<std::string>& endings) {
  std::map<int64_t, std::string> shards;
  int64_t count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    // Older versions of the library append a fingerprint.
    static const std::regex pattern("([a-z]+)-([0-9]{5})-of-([0-9]{5})(-[0-9a-f]+)?([.].*)");
    std::smatch found;
    if (!std::regex_match(name, found, pattern) || part_of_word(found[1].str()) != part) continue;
    if (std::find(endings.begin(), endings.end(), found[5].str()) == endings.end()) continue;
    const int64_t of = std::stoll(found[3].str());
    const bool is_new = shards.emplace(std::stoll(found[2].str()), entry.path().string()).second;
    if (!is_new || (count != 0 && of != count)) {
      throw DataError(fmt::format("{}: has shards of several versions of the {} split, such as {}",
                                  printable(folder.string()), kPartNames[static_cast<size_t>(part)],
                                  printable(name)));
    }
    count = of;
  }
  std::vector<std::string> files;
  for (const auto& [number, file] : shards) files.push_back(file);
  for (int64_t i = 0; i < count; ++i) {
    if (shards.contains(i)) continue;
    throw DataError(fmt::format("{}: shard {} of the {} of the {} split is missing",
                                printable(folder.string()), i, count,
                                kPartNames[static_cast<size_t>(part)]));
  }
  return files;
}

}  // namespace

std::array<std::vector<std::string>, kParts> find_part_shards(
    const std::string& reader, const std::string& path, const std::vector<std::string>& endings) {
  const fs::path root = find_user_data(reader, path);
  std::array<std::vector<std::string>, kParts> shards;
  for (const fs::path& folder : {root, root / "data"}) {
    for (size_t i = 0; i < kParts; ++i) {
      shards[i] = shards_in(folder, static_cast<Part>(i), endings);
    }
    if (!shards[0].empty()) return shards;
  }
  const auto files = find_part_files(reader, path, endings);
  for (size_t i = 0; i < kParts; ++i) {
    if (!files[i].empty()) shards[i] = {files[i].string()};
  }
  return shards;
}

std::string absolute_data_path(const std::string& given) {
  if (given.empty() || given.starts_with("~/") || fs::path(given).is_absolute() ||
      is_piped(given)) {
    return given;
  }
  std::string path = given;
  while (path.starts_with("./")) path.erase(0, 2);
  const size_t brace = path.find('{');
  // The first name of a pattern represents all of them.
  std::string first = path;
  if (brace != std::string::npos) {
    try {
      first = expand_braces(path).front();
    } catch (const DataError&) {
      return given;
    }
  }
  for (const fs::path& place : places_of(first)) {
    if (!is_there(place)) continue;
    std::string folder = fs::absolute(place).string();
    folder.erase(folder.size() - first.size());
    return folder + path;
  }
  return given;
}

}  // namespace gallop::data
