#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/data_sharing.h"
#include "gallop/app/launch_hosts.h"
#include "gallop/app/launched_training.h"
#include "gallop/app/programs.h"
#include "gallop/app/run_handoff.h"
#include "gallop/app/signals.h"
#include "gallop/app/slurm_launch.h"
#include "gallop/base/affinity.h"
#include "gallop/base/file.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/launch/group.h"
#include "gallop/parallel/store.h"
#include "gallop/track/log.h"

namespace gallop::app {

namespace {

constexpr int kMostHosts = 4096;
// Commands that support several processes.
const std::vector<std::string> kCommands = {"train", "prove", "find-lr", "find-batch", "profile"};
constexpr double kLongest = 1e6;

struct Arguments {
  int min_processes = 0;  // If given, at least 1.
  std::string hosts = "1", rendezvous;
  HostsLaunch launch;
};

void add_options_for_hosts(CLI::App& parser, Arguments& arguments) {
  const CLI::Range seconds(0.1, kLongest);
  launch::JobOptions& job = arguments.launch.job;
  parser.add_option("--nnodes", arguments.hosts,
                    "number of hosts, N or MIN:MAX; start this command on each of them");
  parser.add_option("--rdzv", arguments.rendezvous,
                    "HOST[:PORT][,...]: rendezvous candidates; the first available one coordinates "
                    "and serves the store; port 29400 by default");
  parser.add_option("--interface", arguments.launch.interface,
                    "network interface for the traffic between hosts, such as eth0");
  parser
      .add_option("--join-seconds", job.join_seconds,
                  "seconds to wait for more hosts once MIN have joined")
      ->check(CLI::Range(0.0, kLongest));
  parser
      .add_option("--lost-after", job.lost_after,
                  "seconds without a heartbeat after which a host counts as lost")
      ->check(CLI::Range(2.0, kLongest));
  parser.add_option("--wait-for-hosts", job.wait_seconds, "seconds to wait for MIN hosts")
      ->check(seconds);
}

// N or MIN:MAX.
void parse_hosts(const std::string& text, launch::JobOptions& job) {
  const size_t colon = text.find(':');
  const auto least = parse_number<int>(text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : parse_number<int>(text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least || *most > kMostHosts) {
    throw UsageError(
        fmt::format("--nnodes is '{}', but must be N or MIN:MAX with numbers from 1 to {}",
                    printable(text), kMostHosts));
  }
  job.min_hosts = *least;
  job.max_hosts = *most;
}

void finish_hosts(Arguments& arguments) {
  launch::JobOptions& job = arguments.launch.job;
  parse_hosts(arguments.hosts, job);
  if (arguments.rendezvous.empty()) {
    if (job.max_hosts == 1 && arguments.launch.interface.empty()) return;
    throw UsageError(
        "several hosts need --rdzv HOST[:PORT]: one of the hosts, by a name or address that the "
        "others can reach");
  }
  arguments.launch.candidates = launch::parse_candidates(arguments.rendezvous);
  job.candidates = static_cast<int>(arguments.launch.candidates.size());
}

void finish_processes(Arguments& arguments) {
  const int processes = arguments.launch.processes;
  if (arguments.min_processes == 0) {
    arguments.min_processes = processes;
  } else if (!arguments.rendezvous.empty()) {
    throw UsageError("--min-processes is for a single host; use --nnodes MIN:MAX for several");
  } else if (arguments.min_processes > processes) {
    throw UsageError(fmt::format("--min-processes is {}, but there are {} processes",
                                 arguments.min_processes, processes));
  }
}

// Launcher options come before the command, whose options may have the same names.
bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Train, or find a learning rate or batch size, in several processes on this machine or on\n"
      "several machines; the cores and each batch are divided among the processes. If a process\n"
      "fails, all are stopped and restarted from the newest checkpoint. Other programs are\n"
      "started as by torchrun, with the same environment variables.\n\n"
      "Example: gallop launch -n 2 train fashion-mnist\n"
      "         gallop launch -n 2 find-lr fashion-mnist\n"
      "         gallop launch -n 2 prove fashion-mnist\n"
      "         gallop launch -n 2 ./my-program --its-option\n"
      "         gallop launch --nnodes 2:3 --rdzv node1,node2 -n 8 train my.yaml   (on each host)\n"
      "         gallop launch --slurm --help     as a Slurm batch job\n",
      "gallop launch");
  HostsLaunch& launch = arguments.launch;
  parser
      .add_option("-n,--processes", launch.processes,
                  "processes on this host; by default one per core")
      ->default_str("")
      ->check(CLI::Range(1, launch::kMostProcessesOfHost));
  parser
      .add_option("--min-processes", arguments.min_processes,
                  "if a restart fails before a step was logged, start one process fewer, down to "
                  "this number; for one host")
      ->check(CLI::Range(1, launch::kMostProcessesOfHost));
  parser
      .add_option("--max-restarts", launch.job.max_restarts,
                  "maximum restarts after a failed process or a lost host; 3 by default, 0 for "
                  "commands that do not train")
      ->check(CLI::Range(0, 1000000));
  parser
      .add_option("--grace", launch.job.grace,
                  "seconds between asking a process to stop and killing it")
      ->check(CLI::Range(0.0, kLongest));
  add_options_for_hosts(parser, arguments);
  launch.processes = static_cast<int>(cores_given().size());
  launch.command = parse_to_command(parser, args, kCommands, /*takes_programs=*/true,
                                    "gallop launch -n 2 train fashion-mnist");
  if (launch.command.empty()) return false;
  // Other commands save no checkpoints to resume from.
  if (launch.command.front() != "train" && parser.count("--max-restarts") == 0) {
    launch.job.max_restarts = 0;
  }
  finish_hosts(arguments);
  finish_processes(arguments);
  return true;
}

// Invalid usage and bad data fail again after a restart.
bool may_start_again(ExitCode code) {
  return code == ExitCode::kDevice || code == ExitCode::kInternal;
}

// The number of steps, evaluations and checkpoints in a run's log, which grows even after a rewind.
int64_t logged(const std::string& run) {
  const fs::path log = fs::path(run) / "metrics.log";
  if (run.empty() || !fs::exists(log)) return 0;
  const auto records = track::read_log(log).records;
  return std::count_if(records.begin(), records.end(), [](const track::Record& one) {
    return one.kind != "session" && one.kind != "note";
  });
}

ExitCode launch_here(const Arguments& arguments, const StopRequest& stop) {
  const HostsLaunch& launch = arguments.launch;
  const RunHandoff note;
  const DataSharing sharing(1);
  launch::GroupCommand group{.processes = launch.processes,
                             .variables = note.variables(),
                             .grace_seconds = launch.job.grace};
  set_command(group, launch.command, /*run=*/"");
  group.variables.merge(sharing.variables());
  const parallel::StoreServer store(group.host, 0);
  group.port = store.port();
  for (;; ++group.restarts) {
    const int64_t logged_before = logged(note.read());
    const int64_t killed = processes_killed_for_memory();
    const launch::GroupEnd end = launch::run_group(group, stop, print_line);
    const std::string run = note.read();
    // A mistake in the command says nothing about processes.
    const bool is_mistake = end.code == ExitCode::kUsage && !end.reported_error.empty();
    if (!end.first_failure.empty() && !is_mistake) {
      say_launcher(end.first_failure + kept_calls(run, "", end.last_calls));
    }
    if (processes_killed_for_memory() > killed) say_launcher(kKilledForMemory);
    if (stop.requested() || !may_start_again(end.code)) return end.code;
    if (launch.job.max_restarts == 0) return end.code;
    if (group.restarts == launch.job.max_restarts) {
      say_launcher(
          fmt::format("started {} times; --max-restarts allows no more", group.restarts + 1));
      return end.code;
    }
    if (group.restarts > 0 && logged(run) == logged_before &&
        group.processes > arguments.min_processes) {
      group.processes -= 1;
      say_launcher("no progress since the restart: continuing with one process fewer");
    }
    set_command(group, launch.command, run);
    say_launcher(fmt::format("restarting {} processes ({} of {}) from {}", group.processes,
                             group.restarts + 1, launch.job.max_restarts,
                             run.empty() ? "the beginning" : "the newest checkpoint of " + run));
  }
}

}  // namespace

ExitCode run_launch(const CommandContext& command, const std::vector<std::string>& arguments) {
  if (asks_for_slurm(arguments)) {
    deliver_held_signals();
    return run_slurm_launch(command.registries(), arguments);
  }
  StopRequest stop;
  SignalGuard signals(stop, SignalGuard::Says::kNothing);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  signals.started();  // From here on, stop signals let its processes save.
  return parsed.rendezvous.empty() ? launch_here(parsed, stop)
                                   : launch_on_hosts(parsed.launch, stop);
}

}  // namespace gallop::app
