#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "gallop/base/error.h"

namespace gallop::launch {

/// The messages between launchers on several hosts: one line of JSON each, "kind" first. One
/// launcher coordinates; all, including itself, are members.

/// The phase of a coordinator. Of two coordinators, the one in the later phase stays.
enum class CoordinatorPhase {
  kGathering,  ///< Too few hosts.
  kReady,      ///< Enough hosts; starts unless it finds another coordinator.
  kRunning,
};

/// Asks a candidate whether it coordinates.
struct Ask {};
/// The reply of a coordinator.
struct CoordinatorReply {
  CoordinatorPhase coordinator_phase = CoordinatorPhase::kGathering;
};

/// The first message of a member.
struct Join {
  int protocol = 1;
  std::string id;    ///< Unique for each start of a launcher.
  std::string host;  ///< Host name.
  int processes = 1;
  std::string command;  ///< Must be equal on all hosts.
  // What it knows of the training, for a new coordinator.
  int attempt = -1;  ///< The last attempt that it took part in.
  int restarts = 0;  ///< Number of restarts after failures and lost hosts.
  std::string run;   ///< Run folder to resume from; empty if unknown.
};

/// Heartbeat, in both directions, every second.
struct Alive {
  bool running = false;  ///< From a coordinator: whether a training is running.
};

/// To a member: start processes.
struct Start {
  int attempt = 0;  ///< Index of the start, from 0.
  int restarts = 0;
  int first_rank = 0, world_size = 1;
  int host_index = 0, hosts = 1;
  std::string address;  ///< Address of the store.
  int port = 1;
  std::string run;
};

/// In both directions: the run folder.
struct RunAt {
  std::string folder;
};

/// To a member: stop the processes, and kill them after this many seconds.
struct Stop {
  double grace = 0;
};

/// From a member: its processes have ended.
struct Ended {
  int attempt = 0;
  ExitCode code = ExitCode::kDone;
  std::string failure;  ///< Which process failed first, and how; empty if none did.
};

/// From a member: stop the training.
struct Leave {};
/// To a member: another launcher coordinates now.
struct Redirect {};
/// To a member: end with this code. For errors, the text is the reason.
struct Finish {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

using Message = std::variant<Ask, CoordinatorReply, Join, Alive, Start, RunAt, Stop, Ended, Leave,
                             Redirect, Finish>;

constexpr int kMostProcessesOfHost = 1024;

/// Serializes a message as a line, without the newline.
std::string to_line(const Message& message);
/// Parses a line; nothing if it is not a valid message.
std::optional<Message> parse_message(std::string_view line);

}  // namespace gallop::launch
