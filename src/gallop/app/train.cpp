#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "gallop/app/command.h"
#include "gallop/app/console.h"
#include "gallop/app/recipe.h"
#include "gallop/app/signals.h"
#include "gallop/app/team.h"
#include "gallop/app/training_run.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string recipe;
  std::string resume;
  RunPlace place;
  bool show_config = false;
  bool quiet = false;
  bool json = false;
  std::vector<Override> overrides;

  ConsoleStyle style() const {
    if (json) return ConsoleStyle::kJson;
    return quiet ? ConsoleStyle::kQuiet : default_console_style();
  }
};

bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "Train a model from a recipe: the name of one that comes with Gallop, or a YAML file. Any "
      "option\n"
      "of the recipe can be changed on the command line.\n\n"
      "Example: gallop train cifar10 data.path=pictures --optimizer.lr 0.2\n"
      "         gallop train --resume runs/cifar10-1\n\n"
      "'gallop recipes options' lists every option.",
      "gallop train");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file");
  parser.add_option("--resume", arguments.resume, "RUN: continue this run, by name or folder");
  parser.add_option("--name", arguments.place.name, "name of the run; RECIPE-NUMBER by default");
  parser.add_flag("--continue", arguments.place.resume_if_there,
                  "with --name: resume the run if it is there, else start it");
  parser.add_option("--runs", arguments.place.runs, "folder of the runs");
  parser.add_flag("--show-config", arguments.show_config,
                  "print the resolved recipe with the origin of each value, and end");
  auto* quiet = parser.add_flag("--quiet", arguments.quiet, "print only the table at the end");
  parser.add_flag("--json", arguments.json, "print one JSON object a line")->excludes(quiet);
  std::vector<std::string> rest = words;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (arguments.recipe.empty() == arguments.resume.empty()) {
    throw UsageError(
        "give either a recipe or --resume RUN; for example: gallop train fashion-mnist");
  }
  if (arguments.place.resume_if_there && arguments.place.name.empty()) {
    throw UsageError("--continue needs the --name of the run");
  }
  return true;
}

}  // namespace

ExitCode run_train(const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;

  const Families families;
  if (parsed.show_config) {
    if (parsed.recipe.empty()) throw UsageError("--show-config needs a recipe");
    auto resolved = load_recipe(families, parsed.recipe, parsed.overrides);
    std::fputs(resolved.to_yaml(true).c_str(), stdout);
    return ExitCode::kDone;
  }
  const Team team = Team::join();
  try {
    auto run = parsed.resume.empty()
                   ? start_run(families, parsed.place, parsed.recipe, parsed.overrides, stop, team)
                   : resume_run(families, parsed.place, parsed.resume, parsed.overrides, team);
    if (!run) {
      const bool stopped =
          !team.ask_first([&] { return stop.requested() ? "stopped" : ""; }).empty();
      return stopped ? ExitCode::kStopped : ExitCode::kDone;
    }
    const train::Outcome outcome = run->train(parsed.style(), stop);
    return outcome.finished ? ExitCode::kDone : ExitCode::kStopped;
  } catch (const parallel::ErrorOfFirst& error) {
    return error.code();  // Said already.
  }
}

}  // namespace gallop::app
