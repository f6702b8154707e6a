#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// One entry of a run's log.
struct Record {
  int64_t session = 0;  ///< Index of the run's process that wrote it, from 1.
  int64_t step = 0;     ///< Number of completed updates.
  double time = 0;      ///< Seconds since 1970, by the machine's clock.
  std::string kind;     ///< "session", "step", "evaluation", "checkpoint", "end", ...
  std::map<std::string, double> values{};  ///< May be infinite or NaN.
  std::map<std::string, std::string> texts{};
  /// Whether a later session resumed from a step before this one, so that the record no longer
  /// counts. Set by read_log().
  bool superseded = false;
};

/// The content of a log. Each line of the file is a record: JSON, a tab, and the JSON's XXH3-64 in
/// hexadecimal, which detects lines torn by a crash.
struct Log {
  std::vector<Record> records;  ///< In file order, including superseded ones.
  int64_t damaged_lines = 0;    ///< Skipped because of wrong checksums.
  int64_t intact_bytes = 0;     ///< End of the last intact line.

  /// Appends a record. If it begins a session, the records that it rewinds are marked as
  /// superseded.
  void add(Record record);

  /// The records that are not superseded, ordered by step.
  std::vector<Record> current() const;
};

/// Reads a log, which may still be growing. Throws DataError if the file cannot be read.
Log read_log(const fs::path& path);

/// Writes a complete log of one session, with the times of its records. The session starts at
/// `began`, or with the earliest record if that is earlier or `began` is 0. Throws DeviceError.
void write_log(const fs::path& path, const std::vector<Record>& records, double began = 0);

/// Appends to a log, one write per record, so that a killed process loses no appended record.
class LogWriter {
 public:
  /// Opens or creates the log, truncates a torn line at its end, and begins a session with a record
  /// of kind "session" that contains `texts`. Records of earlier sessions after `step` become
  /// superseded. Throws DeviceError if the file cannot be written.
  LogWriter(const fs::path& path, int64_t step, const std::map<std::string, std::string>& texts);

  int64_t session() const { return session_; }

  /// Writes one record, with its session and time filled in. Throws DeviceError and leaves the log
  /// unchanged if the disk is full.
  void append(Record record);

  /// The line that append() would write, and below the file's descriptor.
  std::string line(Record record) const;
  int file() const { return file_.get(); }

  /// Syncs all records to disk. Throws DeviceError.
  void sync();

 private:
  fs::path path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
  int64_t session_ = 1;
};

}  // namespace gallop::track
