#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/mlflow/import.h"
#include "gallop/track/optuna/import.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/tensorboard/runs.h"

namespace gallop::app {

namespace {

struct Import {
  std::string from, runs = "runs", prefix, experiment, study;
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

void import_from_optuna(const Import& import) {
  track::optuna::Storage storage(import.from);
  const auto found = storage.trials(import.study);
  check_names(found, import);
  int64_t points = 0;
  for (const auto& one : found) {
    points += storage.import_trial(one, import.runs, import.prefix + one.name);
  }
  fmt::print("{} runs, {} to {}: {} points\n", format_count(static_cast<int64_t>(found.size())),
             printable(import.prefix + found.front().name),
             printable(import.prefix + found.back().name), format_count(points));
}

}  // namespace

ExitCode runs_import(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Import runs from TensorBoard event files, one run per folder that has some, recursively;\n"
      "from an MLflow experiment; or from the trials in an Optuna SQLite file, whose study "
      "becomes\n"
      "the tag 'sweep'. Scalars and options are imported; images, histograms and artifacts are "
      "not.\n\n"
      "Example: gallop runs import logdir --prefix old-\n"
      "         gallop runs import http://127.0.0.1:5000 --experiment gallop\n"
      "         gallop runs import optuna.db --study widths",
      "gallop runs import");
  Import import;
  parser.add_option("FROM", import.from, "a TensorBoard log folder, a server's address, or a file")
      ->required();
  parser.add_option("--runs", import.runs, "folder of the runs");
  parser.add_option("--prefix", import.prefix, "prefix of their names");
  auto* experiment = parser.add_option("--experiment", import.experiment, "of MLflow");
  auto* study = parser.add_option("--study", import.study, "Optuna study; all by default");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const bool is_server = import.from.starts_with("http://") || import.from.starts_with("https://");
  if (is_server != (experiment->count() > 0)) {
    throw UsageError(is_server
                         ? "--experiment NAME says which runs of the server are wanted"
                         : "--experiment is for a server's address, as http://127.0.0.1:5000");
  }
  const bool is_file = !is_server && fs::is_regular_file(import.from);
  if (study->count() > 0 && !is_file) {
    throw UsageError("--study is for an SQLite file of Optuna");
  }
  if (is_server) {
    import_from_mlflow(import);
  } else if (is_file) {
    import_from_optuna(import);
  } else {
    import_from_tensorboard(import);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
