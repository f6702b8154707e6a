#include <chrono>
#include <thread>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/print.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/app/signals.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/mlflow/push.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_locations.h"

namespace gallop::app {

namespace {

constexpr std::chrono::seconds kPeriod{2};

// Runs until the training has ended and everything is sent, or until `stop`.
int64_t follow(track::mlflow::Push& push, const fs::path& run, const StopRequest& stop) {
  int64_t points = 0;
  std::string trouble;
  for (;;) {
    const bool is_trained = track::RunFolder::is_trained(run);
    bool is_sent = true;
    try {
      points += push.send();
      trouble.clear();
    } catch (const DeviceError& error) {
      if (trouble != error.what()) print_error("gallop: {}; retrying\n", error.what());
      trouble = error.what();
      is_sent = false;
    }
    if ((!is_trained && is_sent) || stop.requested()) return points;
    std::this_thread::sleep_for(kPeriod);
  }
}

}  // namespace

ExitCode runs_push(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Push runs to an MLflow server: options, tags, all data points, and the status. Only what\n"
      "the server does not have yet is sent; the progress is stored in RUN/mlflow.json.\n\n"
      "Example: gallop runs push fashion-mnist-1 --mlflow http://127.0.0.1:5000",
      "gallop runs push");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  track::mlflow::Target target;
  bool follows = false;
  parser.add_option("--mlflow", target.address, "the server's address")
      ->envname("MLFLOW_TRACKING_URI")
      ->required();
  parser.add_option("--experiment", target.experiment, "MLflow experiment; gallop by default")
      ->envname("MLFLOW_EXPERIMENT_NAME");
  parser.add_flag("--follow", follows,
                  "keep pushing while the runs train; wait for an unavailable server");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  track::mlflow::check_address(target.address);
  StopRequest stop;
  SignalGuard guard(stop);
  guard.started();  // Progress is saved between requests.
  for (const fs::path& run : which.find()) {
    track::mlflow::Push push(run, target);
    const int64_t points = follows ? follow(push, run, stop) : push.send();
    fmt::print("{}: {} points\n", printable(track::run_name_of(run)), format_count(points));
  }
  return stop.requested() ? ExitCode::kStopped : ExitCode::kDone;
}

}  // namespace gallop::app
