#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gallop/base/file.h"
#include "gallop/track/log.h"

namespace gallop::track {

/// Follows a growing log; reads each line once.
class LogFollower {
 public:
  explicit LogFollower(fs::path path) : path_(std::move(path)) {}

  struct Reader {
    /// The file was replaced or truncated: all records are read again.
    std::function<void()> restart;
    /// A record and the offset of its line in the file.
    std::function<void(Record record, int64_t offset)> record;
  };

  /// Reads the records written since the last call. A missing file is an empty log. Throws
  /// DataError if it cannot be read.
  void read(const Reader& reader);

  /// The number of lines skipped because of wrong checksums.
  int64_t damaged_lines() const { return damaged_ + damaged_at_end_; }

 private:
  bool is_same(const FileDescriptor& file) const;
  void take(std::string_view line, int64_t offset, const Reader& reader);
  void reset();

  fs::path path_;
  int64_t offset_ = 0;  ///< End of the last intact line; later bytes may be overwritten.
  std::string mark_;    ///< The bytes before `offset_`.
  int64_t damaged_ = 0, damaged_at_end_ = 0;
};

/// Reads the record whose line begins at `offset`. Throws DataError if there is none.
Record read_record(const FileDescriptor& log, const fs::path& path, int64_t offset);

}  // namespace gallop::track
