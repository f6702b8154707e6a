#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/output_file.h"
#include "gallop/app/terminal.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/trial_recipe.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/tune/fold_text.h"
#include "gallop/tune/storage/optuna_export.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownTrials = 20;
const CLI::Range kTrialNumbers(int64_t{0}, int64_t{1'000'000'000});

// Throws UsageError unless the study has a single best trial.
void check_best(const tune::StudyPlace& place, const tune::Study& study) {
  if (study.best()) return;
  if (study.count(tune::TrialState::kComplete) > 0) throw UsageError(above_limits_text(study));
  throw UsageError(fmt::format("no trial of {} is complete yet", place.name));
}

const tune::Trial& best_trial(const tune::StudyPlace& place, const tune::Study& study) {
  check_best(place, study);
  if (study.objectives() == 1) return trial_at(study, *study.best());
  throw UsageError(fmt::format(
      "{} has several metrics, and no trial is the best in all; give --trial NUMBER", place.name));
}

const tune::Trial& trial_of(const tune::StudyPlace& place, const tune::Study& study,
                            int64_t number) {
  return number < 0 ? best_trial(place, study) : trial_at(study, number);
}

// "trial 3: loss 0.5", with the state of a trial that is not complete.
std::string headline(const tune::Study& study, const tune::Trial& trial) {
  const std::string result = result_text(study, trial);
  switch (trial.state) {
    case tune::TrialState::kComplete: return fmt::format("trial {}: {}", trial.number, result);
    case tune::TrialState::kRunning:
      return fmt::format("trial {} is running: {}", trial.number,
                         result.empty() ? "no reports yet" : result + " so far");
    case tune::TrialState::kWaiting:
      return fmt::format("trial {} is waiting{}", trial.number,
                         result.empty() ? "" : ": " + result + " so far");
    case tune::TrialState::kPruned:
    case tune::TrialState::kFailed: break;
  }
  return fmt::format("trial {} {}{}{}", trial.number,
                     trial.state == tune::TrialState::kPruned ? "was pruned" : "has failed",
                     result.empty() ? "" : ": ", result);
}

Json object_of(const tune::Study& study, const tune::Trial& trial) {
  Json object = trial_object(study, trial);
  const std::string line = tune::line_to_repeat(study, trial);
  if (!line.empty()) object["command"] = line;
  return object;
}

void print_front(const tune::Study& study) {
  Json front = Json::array();
  for (const int64_t number : best_trials(study)) {
    front.push_back(object_of(study, trial_at(study, number)));
  }
  fmt::print("{}\n", json_line(front));
}

}  // namespace

ExitCode tune_status(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show the status of a study: progress, best trial, and last trials.\n\n"
      "Example: gallop tune status my-study",
      "gallop tune status");
  WhichStudy which;
  which.add_to(parser);
  bool all = false, json = false;
  parser.add_flag("--all", all, "show all trials");
  parser.add_flag("--json", json, "print JSON");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::StudyPlace place = which.find();
  const tune::Study study = place.read();
  if (json) {
    fmt::print("{}\n", study_json(study));
    return ExitCode::kDone;
  }
  fmt::print("study      {}: {}\n", place.folder.string(), standing_text(study, command.tune()));
  const std::string best = best_text(study);
  if (!best.empty()) fmt::print("best       {}", best);
  const std::string folds = folds_text(study);
  if (!folds.empty()) fmt::print("\nmean and standard deviation:\n{}", folds);
  fmt::print("{}", shared_text(study, all ? study.trials().size() : kShownTrials));
  fmt::print("\n{}", trials_table(study, all ? study.trials().size() : kShownTrials,
                                  static_cast<size_t>(terminal_columns())));
  return ExitCode::kDone;
}

ExitCode tune_best(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show the best trial of a study (the Pareto front if there are several metrics), and the\n"
      "command that runs it again.\n\n"
      "Example: gallop tune best my-study",
      "gallop tune best");
  WhichStudy which;
  which.add_to(parser);
  bool json = false, command = false;
  int64_t number = -1;
  parser.add_option("--trial", number, "show this trial instead of the best")->check(kTrialNumbers);
  auto* as_json =
      parser.add_flag("--json", json, "print JSON; a list of trials if there are several metrics");
  parser.add_flag("--command", command, "print only the command")->excludes(as_json);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::StudyPlace place = which.find();
  const tune::Study study = place.read();
  const bool is_front = study.objectives() > 1 && number < 0;
  if (is_front && json) {
    print_front(study);
    return ExitCode::kDone;
  }
  const std::string pruned = number < 0 ? pruned_text(study) : std::string();
  if (!pruned.empty() && !json && !command) {
    fmt::print("{}for the command of one: {} --trial NUMBER\n", pruned,
               shell_line({"gallop", "tune", "best", place.folder.string()}));
    return ExitCode::kDone;
  }
  if (is_front && !command) {
    check_best(place, study);
    std::fputs(best_text(study).c_str(), stdout);
    return ExitCode::kDone;
  }
  const tune::Trial& trial = trial_of(place, study, number);
  const std::string line = tune::line_to_repeat(study, trial);
  if (command && line.empty()) {
    throw UsageError(fmt::format(
        "{} has no command: other programs run its trials with 'gallop tune ask'", place.name));
  }
  if (json) {
    fmt::print("{}\n", json_line(object_of(study, trial)));
  } else if (command) {
    fmt::print("{}\n", line);
  } else {
    fmt::print("{}\n", headline(study, trial));
    for (const auto& [name, word] : parameter_args(study.space(), trial.point)) {
      fmt::print("  {:<30} {}\n", name, word);
    }
    if (!line.empty()) fmt::print("again: {}\n", line);
  }
  return ExitCode::kDone;
}

ExitCode tune_export(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Export all trials of a study as CSV or JSON, or its best trial as a recipe.\n"
      "The file name '-' is standard output.\n\n"
      "Example: gallop tune export my-study --csv trials.csv --recipe best.yaml",
      "gallop tune export");
  WhichStudy which;
  which.add_to(parser);
  std::string csv, json, recipe, optuna;
  int64_t number = -1;
  parser.add_option("--csv", csv, "FILE: one line per trial");
  parser.add_option("--json", json, "FILE: the complete study");
  parser.add_option("--optuna", optuna, "FILE: a new SQLite file for Optuna and its dashboard");
  auto* of_recipe = parser.add_option("--recipe", recipe, "FILE: the recipe of the best trial");
  parser.add_option("--trial", number, "with --recipe: this trial's")
      ->check(kTrialNumbers)
      ->needs(of_recipe);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  if (csv.empty() && json.empty() && recipe.empty() && optuna.empty()) {
    throw UsageError("nothing to export: specify --csv, --json, --optuna or --recipe with a file");
  }
  const tune::StudyPlace place = which.find();
  const tune::Study study = place.read();
  // First, as this may exec the full program.
  if (!recipe.empty()) write_trial_recipe(command, recipe, study, trial_of(place, study, number));
  if (!csv.empty()) write_output(csv, study_csv(study));
  if (!json.empty()) write_output(json, study_json(study) + "\n");
  if (is_standard_output(optuna)) {
    throw UsageError("--optuna: cannot write a database to standard output");
  }
  if (!optuna.empty()) tune::export_to_optuna(study, optuna);
  if (!recipe.empty() && !is_standard_output(recipe)) {
    fmt::print("to train it: gallop train {}\n", shell_word(recipe));
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
