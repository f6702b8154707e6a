#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/tensorboard/runs.h"

namespace gallop::app {

ExitCode runs_import(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Make runs of the files of TensorBoard in a folder and below: a run for each folder\n"
      "that has some. Numbers and hparams are taken, images and histograms are not.\n\n"
      "Example: gallop runs import logdir --prefix old-",
      "gallop runs import");
  std::string folder, runs = "runs", prefix;
  parser.add_option("FOLDER", folder, "what 'tensorboard --logdir' is given")->required();
  parser.add_option("--runs", runs, "the folder of the runs");
  parser.add_option("--prefix", prefix, "put before their names");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const auto found = track::tensorboard::find_runs(folder);
  // All can be made before any is.
  for (const auto& one : found) {
    const std::string name = prefix + one.name;
    track::RunFolder::check_name(name);
    if (track::RunFolder::is_run(fs::path(runs) / name)) {
      throw UsageError(fmt::format("there is a run '{}' already; give --prefix", printable(name)));
    }
  }
  for (const auto& one : found) {
    const std::string name = prefix + one.name;
    const auto imported = track::tensorboard::import_run(one, runs, name);
    fmt::print("{}: {} points{}\n", printable(name), format_count(imported.points),
               imported.left_out > 0 ? fmt::format("; {} values that are no numbers were left out",
                                                   format_count(imported.left_out))
                                     : "");
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
