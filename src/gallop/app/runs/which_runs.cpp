#include "gallop/app/runs/which_runs.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "gallop/track/run_locations.h"

namespace gallop::app {

void WhichRuns::add_to(CLI::App& parser, bool several) {
  auto* option =
      parser.add_option("RUN", names, "run name, SWEEP/0007 for a trial, or a run folder")
          ->required();
  if (!several) option->expected(1);
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_option("--studies", studies, "folder of the sweeps");
}

std::vector<fs::path> WhichRuns::find() const {
  const track::RunLocations locations{.runs = runs, .studies = studies};
  std::vector<fs::path> folders;
  for (const std::string& name : names) folders.push_back(locations.find(name));
  return folders;
}

track::Log log_of(const fs::path& run) {
  const fs::path log = run / "metrics.log";
  std::error_code error;
  return fs::exists(fs::status(log, error)) || error == std::errc::permission_denied
             ? track::read_log(log)
             : track::Log{};
}

}  // namespace gallop::app
