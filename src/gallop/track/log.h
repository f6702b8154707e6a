#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// One entry of a run's log.
struct Record {
  int64_t session = 0;  ///< Process of the run that wrote it, counted from 1.
  int64_t step = 0;     ///< Updates done.
  double time = 0;      ///< Seconds since 1970, by the clock of the machine.
  std::string kind;     ///< "session", "step", "evaluation", "checkpoint", "end", ...
  std::map<std::string, double> values{};  ///< Infinities and NaN are kept.
  std::map<std::string, std::string> texts{};
  /// A later session went back to a step before this one, so that the run took another course. Set
  /// by read_log().
  bool superseded = false;
};

/// What a log holds. The file is one line a record, JSON and its XXH3-64 in hexadecimal, with a tab
/// between, so that a line torn by a crash is told from a whole one.
struct Log {
  std::vector<Record> records;  ///< As written; those that are superseded too.
  int64_t damaged_lines = 0;    ///< Left out, as their checksum is wrong.
  int64_t intact_bytes = 0;     ///< Where the last good line ends.

  /// One more, behind all others; where it begins a session, those that it went back behind are
  /// superseded.
  void add(Record record);

  /// Records that count, in the order of their steps.
  std::vector<Record> current() const;
};

/// Reads a log, also one that is being written. Throws DataError where the file cannot be read.
Log read_log(const fs::path& path);

/// Writes a whole log at once, of one session, with the times that its records have. The session
/// began at `began`, or with the earliest record where that is 0 or later. Throws DeviceError.
void write_log(const fs::path& path, const std::vector<Record>& records, double began = 0);

/// Appends to a log, one write a record, so that a killed process loses nothing that was appended.
class LogWriter {
 public:
  /// Opens or makes the log, drops what is torn at its end, and begins a session with a record of
  /// kind "session", which has `texts`. What earlier sessions wrote after `step` becomes
  /// superseded. Throws DeviceError where the file cannot be written.
  LogWriter(const fs::path& path, int64_t step, const std::map<std::string, std::string>& texts);

  int64_t session() const { return session_; }

  /// Writes one record; its session and time are filled in. Throws DeviceError, and leaves the log
  /// as it was, where the disk is full.
  void append(Record record);

  /// What append() would write, and the file that it would append to.
  std::string line(Record record) const;
  int file() const { return file_.get(); }

  /// Makes everything so far durable against a loss of power. Throws DeviceError.
  void sync();

 private:
  fs::path path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
  int64_t session_ = 1;
};

}  // namespace gallop::track
