#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::launch {

/// The environment variable with the folder in which each process of a group has its log.
inline constexpr const char* kCallLogsVariable = "GALLOP_CALL_LOGS";

/// A call in which all processes of a group take part.
struct Call {
  enum class State : int64_t { kUnderWay, kDone, kFailed };
  int64_t number = 0;  ///< From 1, the same in all.
  State state = State::kUnderWay;
  double began = 0, ended = 0;  ///< Seconds of the monotonic clock, which is one for a host.
  char place[32] = {};          ///< "step 350"
  char what[40] = {};           ///< "sum of 683.5 KiB"
};

/// The last calls of a process, in a file that outlives it: mapped into memory, so that noting one
/// costs no call of the system and is there for others at once, however the process ends.
class CallLog {
 public:
  static constexpr int64_t kCalls = 64;  ///< That are kept.

  /// Makes the file FOLDER/RANK. Throws DeviceError.
  CallLog(const fs::path& folder, int rank);
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  void begin(int64_t number, const std::string& place, const std::string& what);
  /// Does nothing for a call that is no longer kept.
  void end(int64_t number, Call::State state);

 private:
  Call& slot(int64_t number) { return calls_[number % kCalls]; }

  Call* calls_ = nullptr;
};

/// The calls of a process in their order; none where it has no log.
std::vector<Call> read_calls(const fs::path& folder, int rank);

}  // namespace gallop::launch
