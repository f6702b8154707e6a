#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/text.h"

namespace gallop::app {

const std::vector<Command>& runs_actions() {
  static const std::vector<Command> kActions = {
      {"list", "a table of runs, chosen and sorted by what they have", runs_list},
      {"show", "all that is known of a run", runs_show},
      {"compare", "what differs between runs, and their curves", runs_compare},
      {"tag", "give runs tags, or take them away", runs_tag},
      {"note", "write a note to a run", runs_note},
      {"cost", "time, energy, CO2 and money that runs have taken", runs_cost},
      {"verify", "whether what made runs is still the same", runs_verify},
      {"reproduce", "train a run again from its record, and compare", runs_reproduce},
      {"export", "all points of runs as CSV, JSON or files of TensorBoard", runs_export},
      {"import", "make runs of TensorBoard's files, or of runs of MLflow", runs_import},
      {"push", "send runs to a server of MLflow", runs_push},
      {"delete", "move runs to the trash", runs_delete},
      {"restore", "take runs back from the trash", runs_restore},
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
  throw UsageError(fmt::format("'gallop runs' knows no '{}'{}", printable(first),
                               nearest.empty() ? "; it knows " + join_names(names, "and")
                                               : "; did you mean '" + nearest + "'?"));
}

}  // namespace gallop::app
