#include "gallop/app/command.h"
#include "gallop/app/tune/subcommands.h"

namespace gallop::app {

const std::vector<Command>& tune_actions() {
  static const std::vector<Command> kActions = {
      {"status", "how a study stands, and its last trials", tune_status},
      {"best", "its best trial, and how to run it again", tune_best},
      {"plot", "draws it, in the terminal or as SVG", tune_plot},
      {"importance", "how much each parameter matters", tune_importance},
      {"lineage", "who in a population went on from whom, and how to train its best again",
       tune_lineage},
      {"export", "all trials as CSV, JSON or for Optuna, the best as a recipe", tune_export},
      {"stop", "start no more trials", tune_stop},
      {"resume", "start trials again, and so many more", tune_resume},
      {"retry", "failed trials once more", tune_retry},
      {"create", "make a study without running it, for ask and tell", tune_create},
      {"ask", "a trial for another program to run, as JSON", tune_ask},
      {"tell", "what came of it", tune_tell},
      {"options", "every sampler and pruner with its options", tune_options},
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
