#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "gallop/base/error.h"

namespace gallop::launch {

/// What launchers on several hosts tell each other: one line of JSON a message, "kind" first. One
/// of them coordinates, the others (and itself) are members.

/// How far a coordinator has come. Of two, the one that is further stays.
enum class CoordinatorPhase {
  kGathering,  ///< Too few hosts.
  kReady,      ///< Enough, and about to begin unless it finds another coordinator.
  kRunning,
};

/// To whoever may coordinate: do you?
struct Ask {};
/// The answer of one that does.
struct CoordinatorReply {
  CoordinatorPhase coordinator_phase = CoordinatorPhase::kGathering;
};

/// Of a member, once.
struct Join {
  int protocol = 1;
  std::string id;    ///< Another one for each launcher that is started.
  std::string host;  ///< Its name.
  int processes = 1;
  std::string command;  ///< The same on all hosts.
  // What it knows of the training, so that a new coordinator does.
  int attempt = -1;  ///< The last that it took part in.
  int restarts = 0;  ///< After failures and losses.
  std::string run;   ///< Folder to go on from; empty: none is known.
};

/// Both ways, every second.
struct Alive {
  bool running = false;  ///< Of a coordinator: whether a training goes on.
};

/// To a member: start processes.
struct Start {
  int attempt = 0;  ///< From 0; every start is one.
  int restarts = 0;
  int first_rank = 0, world_size = 1;
  int host_index = 0, hosts = 1;
  std::string address;  ///< Of the store.
  int port = 1;
  std::string run;
};

/// Both ways: the folder of the run.
struct RunAt {
  std::string folder;
};

/// To a member: stop your processes. They are killed after so many seconds.
struct Stop {
  double grace = 0;
};

/// Of a member: its processes have ended.
struct Ended {
  int attempt = 0;
  ExitCode code = ExitCode::kDone;
  std::string failure;  ///< Which was first, and how; empty where none failed.
};

/// Of a member: the training is to stop.
struct Leave {};
/// To a member: another one coordinates now.
struct Redirect {};
/// To a member: end with this code. The text says why, where that is an error.
struct Finish {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

using Message = std::variant<Ask, CoordinatorReply, Join, Alive, Start, RunAt, Stop, Ended, Leave,
                             Redirect, Finish>;

constexpr int kMostProcessesOfHost = 1024;

/// A line without its end.
std::string to_line(const Message& message);
/// Nothing for what is no such line, or has values that cannot be.
std::optional<Message> parse_message(std::string_view line);

}  // namespace gallop::launch
