#include "gallop/track/data_listing.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

constexpr const char* kFile = "data-files.txt";
constexpr size_t kMostNamed = 3;

DataError unreadable(const fs::path& path, const std::error_code& error) {
  return DataError(
      fmt::format("{}: cannot be read: {}", printable(path.string()), error.message()));
}

void add_file(const fs::path& path, const std::string& name, Content& content) {
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) throw unreadable(path, error);
  // One line each, as read back.
  content.files.push_back({printable(name), bytes, std::to_string(bytes)});
}

void add_folder(const fs::path& folder, const std::string& name, Content& content) {
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(
           folder, fs::directory_options::follow_directory_symlink, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path below = entry->path().lexically_relative(folder);
    if (!entry->is_regular_file(error) || error || is_hidden(below)) continue;
    add_file(entry->path(), name + "/" + below.string(), content);
  }
  if (error) throw unreadable(folder, error);
}

void add_named(const NamedFiles& files, Content& content) {
  const fs::path folder = fs::absolute(files.folder).lexically_normal();
  const std::set<std::string> names(files.names.begin(), files.names.end());
  for (const std::string& name : names) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored)) continue;
    add_file(folder / name, name, content);
  }
}

void sort_by_name(Content& content) {
  std::sort(content.files.begin(), content.files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

// Merges the files of each folder into one entry.
Content by_folder(const Content& content) {
  std::map<std::string, std::pair<int64_t, Hasher>> folders;
  for (const FileContent& file : content.files) {
    auto& [bytes, hasher] = folders[file.name.substr(0, file.name.rfind('/') + 1)];
    const std::string line = fmt::format("{} {}\n", file.bytes, file.name);
    bytes += file.bytes;
    hasher.update(line.data(), line.size());
  }
  Content result;
  for (auto& [name, folder] : folders) {
    result.files.push_back({name, folder.first, folder.second.digest()});
  }
  return result;
}

std::string some(const std::vector<std::string>& names, const char* what, bool is_first) {
  const size_t named = std::min(names.size(), kMostNamed);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(named));
  return fmt::format("{}{} {} ({}{})", names.size(),
                     !is_first           ? ""
                     : names.size() == 1 ? " file"
                                         : " files",
                     what, fmt::join(first, ", "), named < names.size() ? ", ..." : "");
}

}  // namespace

bool is_hidden(const fs::path& name) {
  return std::any_of(name.begin(), name.end(),
                     [](const fs::path& part) { return part.string().starts_with('.'); });
}

Content list_data(const DataPaths& data, size_t most) {
  Content content;
  for (const std::string& text : data.paths) {
    const fs::path path = fs::absolute(text).lexically_normal();
    const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
    if (fs::is_directory(path)) {
      add_folder(path, name, content);
    } else {
      add_file(path, name, content);
    }
  }
  for (const NamedFiles& files : data.named) add_named(files, content);
  sort_by_name(content);
  return content.files.size() > most ? by_folder(content) : content;
}

DataPaths listed_paths(const Content& before, const DataPaths& data) {
  DataPaths older{.paths = data.paths};
  const bool is_older = difference(list_data(older), before).added.empty();
  return is_older ? older : data;
}

// The last line is a checksum of the others.
void write_data_listing(const fs::path& run, const Content& listing) {
  std::string text;
  for (const FileContent& file : listing.files) {
    text += fmt::format("{}\t{}\t{}\n", file.bytes, file.checksum, file.name);
  }
  write_file_atomically(run / kFile, text + xxh3_128(text) + "\n");
}

std::optional<Content> read_data_listing(const fs::path& run) {
  const fs::path path = run / kFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const auto fail = [&path]() {
    throw DataError(
        fmt::format("{}: damaged listing of data; delete it to continue "
                    "the run without verifying its data",
                    printable(path.string())));
  };
  std::string text = read_file(path);
  if (text.empty() || text.back() != '\n') fail();
  text.pop_back();
  const size_t end = text.rfind('\n') + 1;  // 0 if there is none.
  if (xxh3_128(text.substr(0, end)) != text.substr(end)) fail();
  Content content;
  std::istringstream lines(text.substr(0, end));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos) fail();
    const auto bytes = parse_number<int64_t>(std::string_view(line).substr(0, first));
    if (!bytes) fail();
    content.files.push_back(
        {line.substr(second + 1), *bytes, line.substr(first + 1, second - first - 1)});
  }
  return content;
}

std::string describe(const ContentDifference& difference) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (names.empty()) return;
    text += (text.empty() ? "" : ", ") + some(names, what, text.empty());
  };
  add(difference.added, "added");
  add(difference.missing, "removed");
  add(difference.changed, "changed");
  return text;
}

}  // namespace gallop::track
