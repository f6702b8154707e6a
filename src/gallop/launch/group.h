#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/stop.h"

namespace gallop::launch {

/// Prefix of the folder for call logs in the folder for temporary files.
inline constexpr const char* kCallLogsPrefix = "gallop-calls-";

/// A process group: copies of a program that run together on this host, and with others on other
/// hosts.
struct GroupCommand {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments{};
  int processes = 1;
  int first_rank = 0, world_size = 0;  ///< Across all hosts; 0: only this host's processes.
  int host_index = 0, hosts = 1;
  std::string host = "127.0.0.1";  ///< Address of the store, which a launcher serves.
  int port = 29500;
  int restarts = 0;  ///< Restarts of this job so far, passed to the processes.
  /// Additional environment variables of all processes.
  std::map<std::string, std::string> variables{};
  double grace_seconds = 30;  ///< Between SIGTERM and SIGKILL.
  double end_seconds = 60;    ///< Between the first successful end and the last.
  /// Between a failure of a process that waited for others and the end of the one that caused it,
  /// whose connections close before its end can be noticed.
  double cause_seconds = 2;

  int all_processes() const { return world_size == 0 ? processes : world_size; }
};

/// The result of a group.
struct GroupEnd {
  ExitCode code = ExitCode::kDone;
  /// Which process failed first, how and where; empty if none did.
  std::string first_failure;
  std::string reported_error{};  ///< That of this process; empty if it has recorded none.
  std::string last_calls;        ///< Of all processes at that time; see describe_calls().
};

/// The process with this local rank: with its part of the cores, the variables of torchrun (RANK,
/// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT) and those of the command.
/// It records its calls in a CallLog in the folder `call_logs`, unless that is empty.
ChildCommand command_of_rank(const GroupCommand& group, int local_rank, const fs::path& call_logs);

/// Starts the processes as command_of_rank() says, and waits for them. Rank 0 inherits this
/// process's output; lines of other ranks are passed to `tell`, prefixed with "[rank 2] ". The
/// error with which a process of Gallop ends is passed last, and only if no process before it has
/// printed the same.
///
/// Each process records its calls in a CallLog, whose folder is in its environment. If one fails,
/// the others get SIGTERM, and SIGKILL after the grace period; the same happens on `stop`, and
/// SIGKILL at once if `stop` was requested by SIGKILL. A process that still runs `end_seconds`
/// after another one finished has failed. A process that was stopped (exit code 5) has not failed.
/// Throws DeviceError if a process cannot be started.
GroupEnd run_group(const GroupCommand& command, const StopRequest& stop,
                   const std::function<void(const std::string& line)>& tell);

}  // namespace gallop::launch
