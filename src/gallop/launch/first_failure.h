#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/launch/call_log.h"

namespace gallop::launch {

/// The state of a process of a group when one of them failed.
struct RankReport {
  int rank = 0;
  pid_t process = 0;
  /// How it ended by itself; nothing if it was asked to stop.
  std::optional<ChildEnd> end{};
  char state = 'R';           ///< State of a running process from /proc/PID/stat: T is stopped.
  std::vector<Call> calls{};  ///< The last calls, in order.
};

struct FirstFailure {
  ExitCode code = ExitCode::kDone;
  int rank = 0;
  std::string text;  ///< Which process failed, how and where, in one line.
  /// Whether the cause is inferred from processes that waited for others: one of these may have
  /// ended already, which is noticed later.
  bool is_inferred = false;
};

/// Determines the root cause of a failure: a process that was killed or ended with an error of its
/// own; otherwise, if the others only waited for it, one that is stopped or has not reached the
/// call in which they wait. `where`: "of 4 on host a". Nothing if no process failed.
std::optional<FirstFailure> first_failure(const std::vector<RankReport>& rank_reports,
                                          const std::string& where);

/// The process that still runs, and where it is, although the others have finished.
std::string who_stays(const std::vector<RankReport>& rank_reports, const std::string& where);

/// The last calls of all processes, one line each. `now`: monotonic time in seconds.
std::string describe_calls(const std::vector<RankReport>& rank_reports, double now);

/// The state of a process from /proc/PID/stat; '?' if it no longer exists.
char state_of(pid_t process);

}  // namespace gallop::launch
