#include <chrono>
#include <csignal>
#include <thread>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/run_check.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/app/shared_prefix.h"
#include "gallop/app/signals.h"
#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/stop.h"
#include "gallop/base/text.h"
#include "gallop/track/run_comparison.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

namespace {

constexpr size_t kShown = 5;

std::string describe_value(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string("none");
}

// Trains `run` again as `name` beside it, or resumes that. A stop is forwarded.
ChildEnd train_again(const fs::path& run, const std::string& name, int processes,
                     const StopRequest& stop) {
  ChildCommand command{.own_group = true};
  if (processes > 1) command.arguments = {"launch", "-n", std::to_string(processes)};
  const fs::path runs = run.parent_path();
  command.arguments.insert(command.arguments.end(),
                           {"train", (run / "recipe.yaml").string(), "--name", name, "--runs",
                            runs.empty() ? "." : runs.string(), "--continue"});
  ChildProcess training(command);
  bool is_reported = false;
  for (;;) {
    if (const auto end = training.poll()) return *end;
    if (stop.requested() && !is_reported) {
      training.send(SIGTERM);
      is_reported = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// The checksum of the newest checkpoint's weights; empty if there is none.
std::string weights_of(const fs::path& run, int64_t& step) {
  const train::CheckpointStore store(run / "checkpoints");
  const auto newest = store.newest();
  step = newest ? newest->step : 0;
  return newest ? store.model_checksum(*newest) : std::string();
}

// Compares the results, prints the outcome, and returns whether they are equal.
bool compare(const fs::path& then, const fs::path& again) {
  const auto comparison = track::compare_results(track::read_log(then / "metrics.log"),
                                                 track::read_log(again / "metrics.log"));
  int64_t step = 0, step_again = 0;
  const std::string weights = weights_of(then, step), weights_again = weights_of(again, step_again);
  const bool same_weights = step == step_again && weights == weights_again;
  if (comparison.differences.empty() && same_weights) {
    fmt::print("the same, bit for bit: {} values of {} metrics, and the weights after step {}\n",
               format_count(comparison.compared), comparison.metrics, format_count(step));
    return true;
  }
  fmt::print("different result: {} of {} values differ{}\n",
             format_count(static_cast<int64_t>(comparison.differences.size())),
             format_count(comparison.compared),
             same_weights ? ", the weights do not" : ", and the weights");
  for (size_t i = 0; i < std::min(kShown, comparison.differences.size()); ++i) {
    const auto& one = comparison.differences[i];
    fmt::print("  step {:<8} {:<24} {} then, {} now\n", one.step, printable(one.metric),
               describe_value(one.one), describe_value(one.other));
  }
  return false;
}

}  // namespace

ExitCode runs_reproduce(const CommandContext& /*command*/,
                        const std::vector<std::string>& arguments) {
  StopRequest stop;
  SignalGuard signals(stop, SignalGuard::Says::kNothing);
  CLI::App parser(
      "Train a run again, from the recipe in its folder and with the same number of processes,\n"
      "and report whether the result is identical; exit code 3 if it is not. If stopped, the same\n"
      "command continues.\n\n"
      "Example: gallop runs reproduce fashion-mnist-1",
      "gallop runs reproduce");
  WhichRuns which;
  which.add_to(parser, /*several=*/false);
  std::string name;
  parser.add_option("--name", name, "name of the new run; RUN-again by default");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const fs::path run = which.find().front();
  if (name.empty()) name = run.filename().string() + "-again";
  track::RunFolder::check_name(name);
  const fs::path again = run.parent_path() / name;
  if (track::RunFolder::is_run(again) &&
      track::RunFolder::read_recipe(again) != track::RunFolder::read_recipe(run)) {
    throw UsageError(fmt::format(
        "run '{}' already exists with a different recipe; choose another --name", name));
  }
  const int processes = track::RunFolder::read_info(run).processes;
  const auto findings = check_run(run);
  if (!is_same(findings)) {
    fmt::print("the provenance of {} has changed:\n", printable(run.filename().string()));
    print(findings);
  }
  if (const std::string why = foreign_steps(run); !why.empty() && processes == 1) {
    fmt::print("its recipe is not sufficient to reproduce it: {}\n", printable(why));
  }
  std::fflush(stdout);
  signals.started();
  const ChildEnd end = train_again(run, name, processes, stop);
  if (end.signal != 0) throw DeviceError(fmt::format("the training {}", end.describe()));
  if (end.exit_code != 0) return static_cast<ExitCode>(end.exit_code);
  fmt::print("\n");
  return compare(run, again) ? ExitCode::kDone : ExitCode::kData;
}

}  // namespace gallop::app
