#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gallop/base/file.h"
#include "gallop/track/log.h"

namespace gallop::track {

/// Reads a log that may grow, each line of it once.
class LogFollower {
 public:
  explicit LogFollower(fs::path path) : path_(std::move(path)) {}

  struct Reader {
    /// The file is another one than before, or has been cut: all of it comes again.
    std::function<void()> restart;
    /// A record, and where its line begins in the file.
    std::function<void(Record record, int64_t offset)> record;
  };

  /// Reads what has been written since the last call. A file that is not there is an empty log.
  /// Throws DataError where it cannot be read.
  void read(const Reader& reader);

  /// Lines that are left out, as their checksum is wrong.
  int64_t damaged_lines() const { return damaged_ + damaged_at_end_; }

 private:
  bool is_same(const FileDescriptor& file) const;
  void take(std::string_view line, int64_t offset, const Reader& reader);
  void reset();

  fs::path path_;
  int64_t offset_ = 0;  ///< Where the last good line ends; what follows may be written over.
  std::string mark_;    ///< The bytes before it.
  int64_t damaged_ = 0, damaged_at_end_ = 0;
};

/// The record whose line begins at `offset` of a log. Throws DataError where there is none.
Record read_record(const FileDescriptor& log, const fs::path& path, int64_t offset);

}  // namespace gallop::track
