#include "gallop/app/command.h"
#include "gallop/app/tune/subcommands.h"

namespace gallop::app {

const std::vector<Command>& tune_actions() {
  static const std::vector<Command> kActions = {
      {"status", "show the progress of a study, and its last trials", tune_status},
      {"best", "show the best trial, and how to run it again", tune_best},
      {"plot", "plot a study in the terminal or as SVG", tune_plot},
      {"importance", "show the importance of each parameter", tune_importance},
      {"lineage", "show the lineage of a population, and how to retrain its best member",
       tune_lineage},
      {"export", "export all trials as CSV, JSON or for Optuna, or the best as a recipe",
       tune_export},
      {"stop", "stop a study; running trials finish", tune_stop},
      {"resume", "resume a stopped study, optionally with more trials", tune_resume},
      {"retry", "queue failed trials again", tune_retry},
      {"create", "create a study without running trials, for ask and tell", tune_create},
      {"ask", "print a trial for another program to run, as JSON", tune_ask},
      {"tell", "report the result of a trial", tune_tell},
      {"options", "list every sampler and pruner with its options", tune_options},
  };
  return kActions;
}

ExitCode run_tune(const CommandContext& command, const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    for (const Command& action : tune_actions()) {
      if (arguments.front() == action.name) {
        return action.run(command, {arguments.begin() + 1, arguments.end()});
      }
    }
  }
  return tune_sweep(command, arguments);
}

}  // namespace gallop::app
