#include <algorithm>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/run_note.h"
#include "gallop/app/signals.h"
#include "gallop/app/slurm_launch.h"
#include "gallop/base/affinity.h"
#include "gallop/base/file.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/launch/group.h"
#include "gallop/parallel/store.h"

namespace gallop::app {

namespace {

constexpr int kMostProcesses = 1024;

struct Arguments {
  int processes = 0;
  int max_restarts = 3;
  double grace_seconds = 30;
  std::vector<std::string> command;
};

// Options stand before the command, whose own may have the same names.
bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "Train in several processes on this machine, each with its share of the cores and of every "
      "batch.\n"
      "Where one fails all are stopped, and started again from the newest checkpoint.\n\n"
      "Example: gallop launch -n 2 train fashion-mnist\n"
      "         gallop launch --slurm --help     as a batch job of Slurm\n",
      "gallop launch");
  parser
      .add_option("-n,--processes", arguments.processes, "how many; one for each core by default")
      ->check(CLI::Range(1, kMostProcesses));
  parser
      .add_option("--max-restarts", arguments.max_restarts,
                  "how often to start again where a process fails")
      ->check(CLI::Range(0, 1000000));
  parser
      .add_option("--grace", arguments.grace_seconds,
                  "seconds between asking a process to stop and killing it")
      ->check(CLI::Range(0.0, 1e6));
  parser.add_option("COMMAND", arguments.command, "train, with what belongs to it");
  const auto begin = std::find(words.begin(), words.end(), "train");
  if (!parse_arguments(parser, {words.begin(), begin})) return false;
  if (!arguments.command.empty()) {
    throw UsageError(
        fmt::format("there is '{}' where 'train' should be; for example: gallop launch "
                    "-n 2 train fashion-mnist",
                    printable(arguments.command.front())));
  }
  if (begin == words.end()) {
    throw UsageError("say what to launch; for example: gallop launch -n 2 train fashion-mnist");
  }
  arguments.command.assign(begin, words.end());
  if (arguments.processes == 0) arguments.processes = static_cast<int>(cores_given().size());
  return true;
}

// The same training from where it has come to: what it is has been kept with the run.
std::vector<std::string> resumed(const std::vector<std::string>& command, const std::string& run) {
  if (run.empty()) return command;
  std::vector<std::string> again = {"train", "--resume", run};
  for (const char* style : {"--quiet", "--json"}) {
    if (std::find(command.begin(), command.end(), style) != command.end())
      again.emplace_back(style);
  }
  return again;
}

// Keeps what all processes were at when one failed, and says where.
std::string kept_calls(const std::string& run, const std::string& calls) {
  if (run.empty() || calls.empty()) return {};
  try {
    const fs::path folder = fs::path(run) / "failures";
    make_folders(folder);
    int number = 1;
    while (fs::exists(folder / fmt::format("{}.txt", number))) ++number;
    const fs::path file = folder / fmt::format("{}.txt", number);
    write_file_atomically(file, calls);
    return fmt::format("; the last calls of all are in {}", printable(file.string()));
  } catch (const Error& error) {
    return fmt::format("; the last calls of all could not be kept: {}", error.what());
  }
}

// Wrong use and bad data are as wrong the next time.
bool may_start_again(ExitCode code) {
  return code == ExitCode::kDevice || code == ExitCode::kInternal;
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

ExitCode run_launch(const std::vector<std::string>& arguments) {
  if (asks_for_slurm(arguments)) return run_slurm_launch(arguments);
  StopRequest stop;
  const SignalGuard signals(stop, SignalGuard::Says::kNothing);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;

  const RunNote note;
  launch::GroupCommand group{.arguments = parsed.command,
                             .processes = parsed.processes,
                             .variables = note.variables(),
                             .grace_seconds = parsed.grace_seconds};
  const parallel::StoreServer store(group.host, 0);
  group.port = store.port();
  for (;; ++group.restarts) {
    const int64_t killed = processes_killed_for_memory();
    const launch::GroupEnd end = launch::run_group(group, stop, say);
    const std::string run = note.read();
    if (!end.first_failure.empty()) {
      say("gallop: " + end.first_failure + kept_calls(run, end.last_calls));
    }
    if (processes_killed_for_memory() > killed) {
      say("gallop: the system has killed a process because memory ran out; try a smaller data.batch "
          "or data.eval_batch, or fewer processes");
    }
    if (stop.requested() || !may_start_again(end.code)) return end.code;
    if (group.restarts == parsed.max_restarts) {
      say(fmt::format("gallop: started {} times; --max-restarts allows no more",
                      group.restarts + 1));
      return end.code;
    }
    group.arguments = resumed(parsed.command, run);
    say(fmt::format("gallop: starting {} processes again ({} of {}), from {}", group.processes,
                    group.restarts + 1, parsed.max_restarts,
                    run.empty() ? "the beginning" : "the newest checkpoint of " + run));
  }
}

}  // namespace gallop::app
