#include <cstdio>

#include "gallop/app/command.h"
#include "gallop/app/recipe.h"
#include "gallop/app/signals.h"
#include "gallop/app/team.h"
#include "gallop/app/train_arguments.h"
#include "gallop/app/training_run.h"

namespace gallop::app {

ExitCode run_train(const std::vector<std::string>& arguments) {
  StopRequest stop;
  SignalGuard signals(stop);
  TrainArguments parsed;
  if (!parse_train(arguments, parsed)) return ExitCode::kDone;

  const Families families;
  if (parsed.show_config) {
    if (parsed.recipe.empty()) throw UsageError("--show-config needs a recipe");
    auto resolved = load_recipe(families, parsed.recipe, parsed.overrides);
    std::fputs(resolved.to_yaml(true).c_str(), stdout);
    return ExitCode::kDone;
  }
  const Team team = Team::join();
  auto run = parsed.resume.empty()
                 ? start_run(families, parsed.place, parsed.recipe, parsed.overrides, stop, team)
                 : resume_run(families, parsed.place, parsed.resume, parsed.overrides, stop, team);
  if (!run) {
    const bool stopped = !team.ask_first([&] { return stop.requested() ? "stopped" : ""; }).empty();
    return stopped ? ExitCode::kStopped : ExitCode::kDone;
  }
  const train::Outcome outcome = run->train(parsed.style(), signals);
  return outcome.finished || outcome.paused ? ExitCode::kDone : ExitCode::kStopped;
}

}  // namespace gallop::app
