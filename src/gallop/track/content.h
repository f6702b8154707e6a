#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/base/named_files.h"

namespace gallop::track {

struct FileContent {
  std::string name;  ///< Relative to the folder, "cat/1.jpg"; for a single file its name.
  int64_t bytes = 0;
  std::string checksum;  ///< XXH3-128 as 32 hexadecimal digits; empty if not computed.
};

/// The content of a file or of a folder, recursively: its files, sorted by name.
struct Content {
  std::vector<FileContent> files;

  int64_t bytes() const;
  /// Whether all checksums were computed.
  bool is_read() const;
  /// One line per file, "CHECKSUM  NAME", in the format of `xxh128sum`, which escapes line feeds
  /// and backslashes.
  std::string listing() const;
  /// The checksum of listing().
  std::string checksum() const;
};

/// A difference between two contents, by name.
struct ContentDifference {
  std::vector<std::string> changed, missing, added;
  bool is_empty() const { return changed.empty() && missing.empty() && added.empty(); }
};
ContentDifference difference(const Content& before, const Content& now);

/// Parses Content::listing(), which has no sizes. Throws DataError, prefixed with `file_name`.
Content parse_listing(const std::string& text, const std::string& file_name);

struct ReadLimits {
  std::function<bool()> stop{};  ///< Polled every few megabytes.
  /// If uncached files have more bytes, nothing is read and only sizes are returned.
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

/// Computes checksums of files. Checksums of files whose inode, size and times have not changed
/// come from the folder `cache`, as in DVC; the cache can be deleted at any time.
class ContentReader {
 public:
  explicit ContentReader(fs::path cache) : cache_(std::move(cache)) {}

  /// Follows links. Throws DataError if a file cannot be read.
  Content read(const fs::path& path, const ReadLimits& limits = {}) const;
  /// Files that are not there are left out.
  Content read(const NamedFiles& files, const ReadLimits& limits = {}) const;

 private:
  Content read_files(const fs::path& folder, const std::vector<std::string>& names,
                     const fs::path& cache_file, const ReadLimits& limits) const;

  fs::path cache_;
};

}  // namespace gallop::track
