#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/stop.h"

namespace gallop::launch {

/// What the name of the folder for call logs begins with, in that for temporary files.
inline constexpr const char* kCallLogsPrefix = "gallop-calls-";

/// Copies of a program that work together on this host, and with others on other hosts.
struct GroupCommand {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;
  int processes = 1;
  int first_rank = 0, world_size = 0;  ///< Among those of all hosts; 0: those of this host are all.
  int host_index = 0, hosts = 1;
  std::string host = "127.0.0.1";  ///< Where the store is, which a launcher has.
  int port = 29500;
  int restarts = 0;                                ///< Of this job so far, told to the processes.
  std::map<std::string, std::string> variables{};  ///< More of the environment, for all.
  double grace_seconds = 30;  ///< Between asking them to stop and killing them.
  double end_seconds = 60;    ///< Between the first that ends as done and the last.

  int all_processes() const { return world_size == 0 ? processes : world_size; }
};

/// How a group ended.
struct GroupEnd {
  ExitCode code = ExitCode::kDone;
  /// Which process failed first, how and where; empty where none did.
  std::string first_failure;
  std::string last_calls;  ///< Of all processes at that time; see describe_calls().
};

/// Starts the processes, each with its share of the cores and with the variables that torchrun sets
/// (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT), and those of the
/// command, and waits for their end. What rank 0 prints goes where this process prints; what others
/// print goes line by line to `tell`, behind "[rank 2] ".
///
/// Each notes its calls in a log (see CallLog), whose folder it finds in its environment. Where one
/// fails the others are asked to stop, by SIGTERM, and killed after the grace; so are all
/// where `stop` asks; where it asks by SIGKILL they are killed at once. One that still runs
/// `end_seconds` after another has ended as done has failed, too. A process that ends as stopped
/// (exit code 5) has not failed. Throws DeviceError where a process cannot be started.
GroupEnd run_group(const GroupCommand& command, const StopRequest& stop,
                   const std::function<void(const std::string& line)>& tell);

}  // namespace gallop::launch
