#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::launch {

/// The environment variable with the folder in which each process of a group has its log.
inline constexpr const char* kCallLogsVariable = "GALLOP_CALL_LOGS";

/// A collective call of all processes of a group.
struct Call {
  enum class State : int64_t { kUnderWay, kDone, kFailed };
  int64_t number = 0;  ///< From 1, the same in all processes.
  State state = State::kUnderWay;
  double began = 0, ended = 0;  ///< Seconds of the host's monotonic clock.
  char place[32] = {};          ///< "step 350"
  char what[40] = {};           ///< "sum of 683.5 KiB"
};

/// The last calls of a process, in a memory-mapped file that outlives it: recording a call needs no
/// system call, and other processes see it at once, however the process ends.
class CallLog {
 public:
  static constexpr int64_t kCalls = 64;  ///< Number of calls kept.

  /// Creates the file FOLDER/RANK. Throws DeviceError.
  CallLog(const fs::path& folder, int rank);
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  void begin(int64_t number, const std::string& place, const std::string& what);
  /// Does nothing for a call that is no longer in the log.
  void end(int64_t number, Call::State state);

 private:
  Call& slot(int64_t number) { return calls_[number % kCalls]; }

  Call* calls_ = nullptr;
};

/// The calls of a process, in order; empty if it has no log.
std::vector<Call> read_calls(const fs::path& folder, int rank);

}  // namespace gallop::launch
