#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/text.h"

namespace gallop::app {

const std::vector<Command>& runs_actions() {
  static const std::vector<Command> kActions = {
      {"list", "list runs in a table, filtered and sorted", runs_list},
      {"show", "show the details of a run", runs_show},
      {"compare", "compare options, metrics and curves of runs", runs_compare},
      {"tag", "add or remove tags", runs_tag},
      {"note", "set the note of a run", runs_note},
      {"cost", "report time, energy, CO2 and cost of runs", runs_cost},
      {"verify", "verify the provenance of runs", runs_verify},
      {"clean", "find samples with wrong labels, using predictions", runs_clean},
      {"reproduce", "train a run again from its record, and compare results", runs_reproduce},
      {"export", "export data points as CSV, JSON or TensorBoard files", runs_export},
      {"import", "import runs from TensorBoard, MLflow or Optuna", runs_import},
      {"push", "push runs to an MLflow server", runs_push},
      {"delete", "move runs to the trash", runs_delete},
      {"restore", "restore runs from the trash", runs_restore},
  };
  return kActions;
}

ExitCode run_runs(const CommandContext& command, const std::vector<std::string>& arguments) {
  std::string list = "\n'gallop runs ACTION':\n";
  std::vector<std::string> names;
  for (const Command& action : runs_actions()) {
    if (!arguments.empty() && arguments.front() == action.name) {
      return action.run(command, {arguments.begin() + 1, arguments.end()});
    }
    list += fmt::format("  {:<10}{}\n", action.name, action.summary);
    names.emplace_back(action.name);
  }
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h") {
    CLI::App parser(
        "Manage trained runs.\n\n"
        "Example: gallop runs list --filter \"metrics.accuracy > 0.9\"\n" +
            list,
        "gallop runs");
    parse_arguments(parser, {first});
    return ExitCode::kDone;
  }
  if (first.empty() || first.starts_with('-')) return runs_list(command, arguments);
  const std::string nearest = nearest_name(first, names);
  throw UsageError(fmt::format("unknown action '{}' of 'gallop runs'{}", printable(first),
                               nearest.empty() ? "; known are " + join_names(names, "and")
                                               : "; did you mean '" + nearest + "'?"));
}

}  // namespace gallop::app
