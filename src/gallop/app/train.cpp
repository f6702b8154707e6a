#include <cstdio>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/recipe.h"
#include "gallop/app/signals.h"
#include "gallop/app/start_run.h"
#include "gallop/app/train_arguments.h"

namespace gallop::app {

ExitCode run_train(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  SignalGuard signals(stop);
  TrainArguments parsed;
  if (!parse_train(arguments, parsed)) return ExitCode::kDone;

  const Registries& registries = command.registries();
  if (parsed.show_config) {
    if (parsed.recipe.empty()) throw UsageError("--show-config needs a recipe");
    auto resolved = load_recipe(registries, parsed.recipe, parsed.overrides);
    std::fputs(resolved.to_yaml(true).c_str(), stdout);
    return ExitCode::kDone;
  }
  const DistributedContext context = DistributedContext::join();
  auto run =
      parsed.resume.empty()
          ? start_run(registries, parsed.options, parsed.recipe, parsed.overrides, stop, context)
          : resume_run(registries, parsed.options, parsed.resume, parsed.overrides, stop, context);
  if (!run) {
    const bool stopped = context.run_on_rank0([&] { return stop.requested(); });
    return stopped ? ExitCode::kStopped : ExitCode::kDone;
  }
  const train::Outcome outcome = run->train(parsed.style(), signals);
  return outcome.finished || outcome.paused ? ExitCode::kDone : ExitCode::kStopped;
}

}  // namespace gallop::app
