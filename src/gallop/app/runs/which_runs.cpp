#include "gallop/app/runs/which_runs.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "gallop/track/run_folder.h"

namespace gallop::app {

void WhichRuns::add_to(CLI::App& parser, bool several) {
  auto* option = parser.add_option("RUN", names, "a run's name, or its folder")->required();
  if (!several) option->expected(1);
  parser.add_option("--runs", runs, "the folder of the runs");
}

std::vector<fs::path> WhichRuns::find() const {
  std::vector<fs::path> folders;
  for (const std::string& name : names) folders.push_back(track::RunFolder::find(runs, name));
  return folders;
}

}  // namespace gallop::app
