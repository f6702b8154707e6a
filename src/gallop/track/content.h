#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

struct FileContent {
  std::string name;  ///< Below the folder, "cat/1.jpg"; of a single file its own.
  int64_t bytes = 0;
  std::string checksum;  ///< XXH3-128, as 32 hexadecimal digits; empty where it was not read.
};

/// What a file, or a folder with all in it, holds: its files in the order of their names.
struct Content {
  std::vector<FileContent> files;

  int64_t bytes() const;
  /// Whether all checksums are there.
  bool is_read() const;
  /// One line a file, "CHECKSUM  NAME", as `xxh128sum` prints and checks them.
  std::string listing() const;
  /// Of the listing.
  std::string checksum() const;
};

/// What differs, by name.
struct ContentDifference {
  std::vector<std::string> changed, missing, added;
  bool is_empty() const { return changed.empty() && missing.empty() && added.empty(); }
};
ContentDifference difference(const Content& before, const Content& now);

/// The inverse of Content::listing(), without sizes. Throws DataError, which begins with
/// `file_name`.
Content parse_listing(const std::string& text, const std::string& file_name);

struct ReadLimits {
  std::function<bool()> stop{};  ///< Asked between pieces of some megabytes.
  /// If files that are not in the cache hold more, nothing is read and only sizes are returned.
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

/// Reads what files hold. Checksums of files that have not changed since (number, size and times)
/// are taken from `cache`, a folder, as DVC does; they are lost without harm.
class ContentReader {
 public:
  explicit ContentReader(fs::path cache) : cache_(std::move(cache)) {}

  /// Links are followed. Throws DataError where something cannot be read.
  Content read(const fs::path& path, const ReadLimits& limits = {}) const;

 private:
  fs::path cache_;
};

}  // namespace gallop::track
