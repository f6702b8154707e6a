#include <algorithm>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/signals.h"
#include "gallop/app/team.h"
#include "gallop/app/tune/study_run.h"
#include "gallop/app/tune/study_text.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

struct Arguments {
  NewStudy study;
  std::string studies = "studies";
  StudyRunConfig run;
  bool has_workers = false;
  std::string helped;  // A study that another process leads.
};

std::string list_of_actions() {
  std::string text;
  for (const TuneAction& action : tune_actions()) {
    text += fmt::format("  {:<12}{}\n", action.name, action.summary);
  }
  return text;
}

bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "Search the options of a recipe, or of any command, for those that make a metric best.\n\n"
      "Example: gallop tune sweep.yaml --workers 2\n\n"
      "The sweep is a YAML file. Given again, the study goes on where it was. Besides, there is\n"
      "'gallop tune ACTION':\n" +
          list_of_actions(),
      "gallop tune");
  StudyRunConfig& run = arguments.run;
  parser.add_option("SWEEP", arguments.study.sweep_file, "the sweep's file");
  parser.add_option("--name", arguments.study.name, "name of the study; that of the file");
  parser.add_option("--studies", arguments.studies, "folder of the studies");
  parser.add_option("--store", arguments.study.store,
                    "postgresql://...: a database that keeps the study, for workers on many hosts");
  parser.add_option("--warm-start", arguments.study.earlier,
                    "STUDY: a new study takes over the trials of this one");
  parser.add_option("--worker", arguments.helped,
                    "STUDY: take part in a study that another process leads, on this or another "
                    "host, by its folder");
  parser.add_option(
      "--listen", run.listen,
      "address where workers on other hosts reach this process; 127.0.0.1 by default");
  auto* workers = parser.add_option("--workers", run.workers,
                                    "trials at once on this machine, which share its cores");
  workers->check(CLI::Range(1, 1024));
  parser.add_option("--gpus", run.gpus, "numbers of GPUs, of which workers have one each in turn")
      ->delimiter(',');
  auto* quiet = parser.add_flag("--quiet", run.quiet, "print only the end");
  parser.add_flag("--json", run.json, "print one JSON object a line")->excludes(quiet);
  if (!parse_arguments(parser, words)) return false;
  if (arguments.study.sweep_file.empty() == arguments.helped.empty()) {
    throw UsageError("give either a sweep or --worker STUDY; for example: gallop tune sweep.yaml");
  }
  arguments.has_workers = workers->count() > 0;
  arguments.study.studies = arguments.studies;
  return true;
}

ExitCode run_sweep(const std::vector<std::string>& words) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments arguments;
  if (!parse(words, arguments)) return ExitCode::kDone;
  require_alone("tune");
  if (!arguments.helped.empty()) {
    const StudyPlace place = find_study(arguments.studies, arguments.helped);
    return help_study(place, arguments.run, stop) ? ExitCode::kDone : ExitCode::kStopped;
  }
  tune::Sweep sweep;
  const StudyPlace place = make_study(arguments.study, sweep);
  if (!arguments.has_workers) arguments.run.workers = static_cast<int>(sweep.workers);
  arguments.run.seconds = sweep.seconds;
  const bool is_done = run_study(place, arguments.run, stop);
  const tune::Study study = place.read();
  if (!is_done) {
    fmt::print(stderr, "gallop: stopped; to go on: gallop tune {}\n", arguments.study.sweep_file);
    return ExitCode::kStopped;
  }
  if (arguments.run.json) return ExitCode::kDone;
  const std::string best = best_text(study);
  if (best.empty() && study.count(tune::TrialState::kPruned) > 0) {
    fmt::print("no trial ran to its end; 'gallop tune status {}' shows how far they came\n",
               place.folder.string());
    return ExitCode::kDone;
  }
  if (best.empty()) {
    throw DataError(fmt::format("no trial came to an end; {} has what they printed",
                                (place.folder / "output").string()));
  }
  fmt::print("best       {}{}", best, shared_text(study, 0));
  fmt::print("to train it again: gallop tune best {}\n", place.folder.string());
  return ExitCode::kDone;
}

}  // namespace

const std::vector<TuneAction>& tune_actions() {
  static const std::vector<TuneAction> kActions = {
      {"status", "how a study stands, and its last trials", tune_status},
      {"best", "its best trial, and how to run it again", tune_best},
      {"plot", "draws it, in the terminal or as SVG", tune_plot},
      {"importance", "how much each parameter matters", tune_importance},
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

ExitCode run_tune(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    for (const TuneAction& action : tune_actions()) {
      if (arguments.front() == action.name) {
        return action.run({arguments.begin() + 1, arguments.end()});
      }
    }
  }
  return run_sweep(arguments);
}

}  // namespace gallop::app
