#include "gallop/app/runs/which_runs.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

fs::path find_run(const fs::path& runs, const std::string& name) {
  if (name.find('/') == std::string::npos && track::RunFolder::is_run(runs / name)) {
    return runs / name;
  }
  const fs::path path = fs::path(name).lexically_normal();
  if (track::RunFolder::is_run(path)) return path.has_filename() ? path : path.parent_path();
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    if (track::RunFolder::is_run(entry.path())) names.push_back(entry.path().filename().string());
  }
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("there is no run '{}' in {}{}", printable(name),
                               printable(runs.string()),
                               nearest.empty() ? "; 'gallop runs' lists them"
                                               : "; did you mean '" + printable(nearest) + "'?"));
}

}  // namespace

void WhichRuns::add_to(CLI::App& parser, bool several) {
  auto* option = parser.add_option("RUN", names, "a run's name, or its folder")->required();
  if (!several) option->expected(1);
  parser.add_option("--runs", runs, "the folder of the runs");
}

std::vector<fs::path> WhichRuns::find() const {
  std::vector<fs::path> folders;
  for (const std::string& name : names) folders.push_back(find_run(runs, name));
  return folders;
}

}  // namespace gallop::app
