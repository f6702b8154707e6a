#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/launch/call_log.h"

namespace gallop::launch {

/// A process of a group when one of them had failed.
struct RankReport {
  int rank = 0;
  pid_t process = 0;
  /// How it has ended by itself; nothing where it was asked to.
  std::optional<ChildEnd> end{};
  char state = 'R';           ///< Of one that runs, as /proc/PID/stat has it: T is stopped.
  std::vector<Call> calls{};  ///< The last ones, in their order.
};

struct FirstFailure {
  ExitCode code = ExitCode::kDone;
  std::string text;  ///< Which process failed, how and where, in one line.
};

/// What has failed first, of what each process knows. One that was killed, or that ended for a
/// reason of its own; else, where the others have only waited for it, one that is stopped or that
/// has not come to the call in which they wait. `where`: "of 4 on host a". Nothing where none has
/// failed.
std::optional<FirstFailure> first_failure(const std::vector<RankReport>& rank_reports,
                                          const std::string& where);

/// Which process still runs, and where it is, where the others have ended as done.
std::string who_stays(const std::vector<RankReport>& rank_reports, const std::string& where);

/// The last calls of all, a line each, for people. `now`: by the monotonic clock, in seconds.
std::string describe_calls(const std::vector<RankReport>& rank_reports, double now);

/// The state of a process as /proc/PID/stat has it; '?' where it is gone.
char state_of(pid_t process);

}  // namespace gallop::launch
