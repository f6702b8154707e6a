#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/text.h"
#include "gallop/track/run_locations.h"
#include "gallop/track/trash.h"

namespace gallop::app {

ExitCode runs_delete(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Move runs to the trash, RUNS/.trash, from which 'gallop runs restore' restores them.\n"
      "Empty the trash yourself to delete them permanently.\n\n"
      "Example: gallop runs delete fashion-mnist-1",
      "gallop runs delete");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  // Checks that all runs exist and are idle before deleting any.
  const std::vector<fs::path> folders = which.find();
  for (const fs::path& folder : folders) track::check_idle(folder);
  for (const fs::path& folder : folders) {
    fmt::print("{} is in {}\n", printable(track::run_name_of(folder)),
               printable(track::move_to_trash(folder).string()));
  }
  return ExitCode::kDone;
}

ExitCode runs_restore(const CommandContext& /*command*/,
                      const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Restore runs from the trash.\n\n"
      "Example: gallop runs restore fashion-mnist-1",
      "gallop runs restore");
  std::vector<std::string> names;
  std::string runs = "runs", studies = "studies";
  parser.add_option("RUN", names, "run name; SWEEP/0007 for a trial")->required();
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_option("--studies", studies, "folder of the sweeps");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const track::RunLocations locations{.runs = runs, .studies = studies};
  for (const std::string& name : names) {
    const fs::path place = locations.path_of(name);
    fmt::print(
        "{} is restored\n",
        printable(
            track::restore_from_trash(place.parent_path(), place.filename().string()).string()));
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
