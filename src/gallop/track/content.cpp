#include "gallop/track/content.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

constexpr size_t kPiece = size_t{4} << 20;
constexpr size_t kDigits = 32;
constexpr size_t kGap = 2;  // Spaces after the checksum.

struct Known {
  std::string state, checksum;
};
using Cache = std::map<std::string, Known>;  // By name.

// As `xxh128sum` escapes line feeds and backslashes, so that each file is one line; the line then
// begins with a backslash.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    text += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    if (is_escape) ++i;
    name += is_escape && text[i] == 'n' ? '\n' : text[i];
  }
  return name;
}

// Lines "STATE<tab>CHECKSUM<tab>NAME". Damaged entries are recomputed.
Cache read_cache(const fs::path& file) {
  Cache cache;
  std::string text;
  try {
    text = read_file(file);
  } catch (const DataError&) {
    return cache;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find('\t');
    const size_t second = line.find('\t', first + 1);
    if (second == std::string::npos || second - first - 1 != kDigits) continue;
    cache[unescaped(std::string_view(line).substr(second + 1))] = {line.substr(0, first),
                                                                   line.substr(first + 1, kDigits)};
  }
  return cache;
}

void write_cache(const fs::path& file, const Cache& cache) {
  std::string text;
  for (const auto& [name, known] : cache) {
    text += fmt::format("{}\t{}\t{}\n", known.state, known.checksum, escaped(name));
  }
  try {
    make_folders(file.parent_path());
    write_file_atomically(file, text);
  } catch (const DeviceError&) {
    // Ignored: checksums are recomputed the next time.
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(
           folder, fs::directory_options::follow_directory_symlink, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error)) {
      names.push_back(entry->path().lexically_relative(folder).string());
    }
  }
  if (error) {
    throw DataError(
        fmt::format("{}: cannot be read: {}", printable(folder.string()), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_that_exist(const NamedFiles& files) {
  std::vector<std::string> names;
  for (const std::string& name : files.names) {
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(files.folder) / name, ignored)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string checksum_of(const fs::path& path, const std::function<bool()>& stop) {
  const MappedFile file(path);
  Hasher hasher;
  for (size_t at = 0; at < file.bytes().size(); at += kPiece) {
    if (stop && stop()) break;
    hasher.update(file.bytes().data() + at, std::min(kPiece, file.bytes().size() - at));
  }
  return hasher.digest();
}

// Includes ctime, which programs cannot set back.
std::string state_of(const fs::path& path, struct stat& info) {
  if (stat(path.c_str(), &info) != 0) {
    throw DataError(fmt::format("{}: cannot be read: {}", printable(path.string()),
                                std::generic_category().message(errno)));
  }
  return fmt::format("{} {}.{:09}", file_state(info), info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

}  // namespace

int64_t Content::bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const FileContent& file) { return sum + file.bytes; });
}

std::string Content::listing() const {
  std::string text;
  for (const FileContent& file : files) {
    const std::string name = escaped(file.name);
    text += (name == file.name ? "" : "\\") + file.checksum + "  " + name + "\n";
  }
  return text;
}

std::string Content::checksum() const { return xxh3_128(listing()); }

ContentDifference difference(const Content& before, const Content& now) {
  ContentDifference result;
  auto a = before.files.begin(), b = now.files.begin();
  while (a != before.files.end() || b != now.files.end()) {
    if (b == now.files.end() || (a != before.files.end() && a->name < b->name)) {
      result.missing.push_back((a++)->name);
    } else if (a == before.files.end() || b->name < a->name) {
      result.added.push_back((b++)->name);
    } else {
      if (a->checksum != b->checksum) result.changed.push_back(a->name);
      ++a, ++b;
    }
  }
  return result;
}

Content parse_listing(const std::string& text, const std::string& file_name) {
  Content content;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_escaped = line.starts_with('\\');
    if (is_escaped) line.erase(0, 1);
    if (line.size() <= kDigits + kGap || line.substr(kDigits, kGap) != "  ") {
      throw DataError(fmt::format("{}: not a listing of files: {}", printable(file_name),
                                  printable(line.substr(0, 80))));
    }
    const std::string name = line.substr(kDigits + kGap);
    content.files.push_back(
        {.name = is_escaped ? unescaped(name) : name, .checksum = line.substr(0, kDigits)});
  }
  return content;
}

bool Content::is_read() const {
  return std::none_of(files.begin(), files.end(),
                      [](const FileContent& file) { return file.checksum.empty(); });
}

Content ContentReader::read(const fs::path& path, const ReadLimits& limits) const {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path folder = is_folder ? path : path.parent_path();
  const auto names =
      is_folder ? names_in(path) : std::vector<std::string>{path.filename().string()};
  return read_files(folder, names, cache_ / xxh3_128(fs::absolute(path).string()), limits);
}

Content ContentReader::read(const NamedFiles& files, const ReadLimits& limits) const {
  const fs::path folder = files.folder;
  return read_files(folder, names_that_exist(files),
                    cache_ / xxh3_128(fs::absolute(folder).string() + "\nnamed"), limits);
}

Content ContentReader::read_files(const fs::path& folder, const std::vector<std::string>& names,
                                  const fs::path& cache_file, const ReadLimits& limits) const {
  const Cache cache = read_cache(cache_file);
  Cache now;
  Content content;
  int64_t unknown_bytes = 0;
  for (const std::string& name : names) {
    struct stat info = {};
    Known& known = now[name];
    known.state = state_of(folder / name, info);
    const auto found = cache.find(name);
    if (found != cache.end() && found->second.state == known.state) {
      known.checksum = found->second.checksum;
    } else {
      unknown_bytes += info.st_size;
    }
    content.files.push_back({name, info.st_size, known.checksum});
  }
  if (content.is_read() || unknown_bytes > limits.bytes) return content;
  for (FileContent& file : content.files) {
    if (!file.checksum.empty()) continue;
    if (limits.stop && limits.stop()) return content;
    const std::string checksum = checksum_of(folder / file.name, limits.stop);
    if (limits.stop && limits.stop()) return content;
    file.checksum = now[file.name].checksum = checksum;
  }
  write_cache(cache_file, now);
  return content;
}

}  // namespace gallop::track
