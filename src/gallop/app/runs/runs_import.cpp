#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/mlflow/import.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/tensorboard/runs.h"

namespace gallop::app {

namespace {

struct Import {
  std::string from, runs = "runs", prefix, experiment;
};

// All can be made before any is.
template <typename Found>
void check_names(const std::vector<Found>& found, const Import& import) {
  for (const Found& one : found) {
    const std::string name = import.prefix + one.name;
    track::RunFolder::check_name(name);
    if (track::RunFolder::is_run(fs::path(import.runs) / name)) {
      throw UsageError(fmt::format("there is a run '{}' already; give --prefix", printable(name)));
    }
  }
}

void import_from_tensorboard(const Import& import) {
  const auto found = track::tensorboard::find_runs(import.from);
  check_names(found, import);
  for (const auto& one : found) {
    const std::string name = import.prefix + one.name;
    const auto imported = track::tensorboard::import_run(one, import.runs, name);
    fmt::print("{}: {} points{}\n", printable(name), format_count(imported.points),
               imported.left_out > 0 ? fmt::format("; {} values that are no numbers were left out",
                                                   format_count(imported.left_out))
                                     : "");
  }
}

void import_from_mlflow(const Import& import) {
  track::mlflow::Client client(import.from);
  const auto found = track::mlflow::find_runs(client, import.experiment);
  check_names(found, import);
  for (const auto& one : found) {
    const std::string name = import.prefix + one.name;
    const int64_t points = track::mlflow::import_run(client, one, import.runs, name);
    fmt::print("{}: {} points\n", printable(name), format_count(points));
  }
}

}  // namespace

ExitCode runs_import(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Make runs of the files of TensorBoard in a folder and below, a run for each folder that\n"
      "has some, or of the runs of an experiment of MLflow. Numbers and options are taken, "
      "images,\n"
      "histograms and artifacts are not.\n\n"
      "Example: gallop runs import logdir --prefix old-\n"
      "         gallop runs import http://127.0.0.1:5000 --experiment gallop",
      "gallop runs import");
  Import import;
  parser
      .add_option("FROM", import.from,
                  "what 'tensorboard --logdir' is given, or a server's address")
      ->required();
  parser.add_option("--runs", import.runs, "the folder of the runs");
  parser.add_option("--prefix", import.prefix, "put before their names");
  auto* experiment = parser.add_option("--experiment", import.experiment, "of MLflow");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const bool is_server = import.from.starts_with("http://") || import.from.starts_with("https://");
  if (is_server != (experiment->count() > 0)) {
    throw UsageError(is_server
                         ? "--experiment NAME says which runs of the server are wanted"
                         : "--experiment is for a server's address, as http://127.0.0.1:5000");
  }
  if (is_server) {
    import_from_mlflow(import);
  } else {
    import_from_tensorboard(import);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
