#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLastStep = int64_t{1} << 53;

const char* verdict_name(tune::Verdict verdict) {
  switch (verdict) {
    case tune::Verdict::kGoOn: return "go-on";
    case tune::Verdict::kPrune: return "prune";
    case tune::Verdict::kAbandon: return "abandon";
  }
  return "";
}

// CLI11 parses -.5 as an option, but -0.5 as a number.
std::vector<std::string> with_leading_zeros(std::vector<std::string> args) {
  for (std::string& word : args) {
    if (word.starts_with("-.") && parse_number<double>(word)) word.insert(1, "0");
  }
  return args;
}

}  // namespace

ExitCode tune_ask(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Ask a study for a trial, to be run by any program. Prints one line of JSON: the trial's\n"
      "number, attempt and parameters; {\"wait\":true} if running trials must finish first;\n"
      "{\"done\":true} if the study is complete.\n\n"
      "Example: gallop tune ask my-study",
      "gallop tune ask");
  WhichStudy which;
  which.add_to(parser);
  std::string worker = fmt::format("{}:{}", host_name(), getppid());
  parser.add_option("--worker", worker, "worker name; by default derived from the calling process");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const auto client = which.find().open_study_client(command.tune());
  const tune::Assignment assignment = client->ask(worker);
  switch (assignment.kind) {
    case tune::Assignment::Kind::kWait: fmt::print("{{\"wait\":true}}\n"); break;
    case tune::Assignment::Kind::kDone: fmt::print("{{\"done\":true}}\n"); break;
    case tune::Assignment::Kind::kTrial: {
      const tune::Trial& trial = assignment.trial;
      Json json{
          {"trial", trial.number},
          {"attempt", trial.attempt},
          {"parameters", Json::parse(parameters_json(client->settings().space, trial.point))}};
      if (trial.last_step > 0) json["last_step"] = trial.last_step;
      if (!assignment.parent_folder.empty()) json["parent_folder"] = assignment.parent_folder;
      fmt::print("{}\n", json_line(json));
      break;
    }
  }
  return ExitCode::kDone;
}

ExitCode tune_tell(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Report the result of a trial: the final value of each metric, or with --step an "
      "intermediate\n"
      "value of the first metric, which is answered by {\"verdict\":\"go-on\"}, \"prune\" or "
      "\"abandon\".\n\n"
      "Example: gallop tune tell my-study 7 0.93\n"
      "         gallop tune tell my-study 7 0.88 --step 3\n"
      "         gallop tune tell my-study 7 --state failed --message 'out of memory'",
      "gallop tune tell");
  WhichStudy which;
  which.add_to(parser);
  int64_t number = 0, step = -1;
  int32_t attempt = 0;
  tune::Outcome outcome;
  std::string state = "complete";
  parser.add_option("TRIAL", number, "trial number")->required();
  parser.add_option("VALUE", outcome.values, "one value per metric, in order");
  parser.add_option("--step", step, "report an intermediate value at this step")
      ->check(CLI::Range(int64_t{0}, kLastStep));
  parser.add_option("--state", state, "complete, pruned or failed")
      ->check(CLI::IsMember({"complete", "pruned", "failed"}));
  parser.add_option("--message", outcome.message, "reason of the failure");
  parser.add_option("--limited", outcome.limited, "one value per limit, in order");
  parser.add_option("--attempt", attempt, "attempt as returned by ask; the last by default");
  if (!parse_arguments(parser, with_leading_zeros(arguments))) return ExitCode::kDone;
  const tune::StudyPlace place = which.find();
  const tune::Study study = place.read();
  const auto client = place.open_study_client(command.tune());
  tune::Trial trial = trial_at(study, number);
  if (attempt > 0) trial.attempt = attempt;
  if (trial.is_finished()) {
    throw UsageError(fmt::format("trial {} is already {}", number, tune::state_name(trial.state)));
  }
  if (step >= 0) {
    if (outcome.values.size() != 1) throw UsageError("a report needs exactly one VALUE");
    const auto verdict = client->report(trial, step, outcome.values.front());
    fmt::print("{}\n", Json{{"verdict", verdict_name(verdict)}}.dump());
    return ExitCode::kDone;
  }
  for (const auto each : {tune::TrialState::kPruned, tune::TrialState::kFailed}) {
    if (state == tune::state_name(each)) outcome.state = each;
  }
  const size_t wanted = study.objectives();
  if (state == "complete" && outcome.values.size() != wanted) {
    throw UsageError(fmt::format("a complete trial has {} VALUE{}, not {}", wanted,
                                 wanted == 1 ? "" : "s", outcome.values.size()));
  }
  const size_t limits = study.settings().limits.size();
  if (state == "complete" && outcome.limited.size() != limits) {
    throw UsageError(fmt::format("a complete trial has {} number{} after --limited, not {}", limits,
                                 limits == 1 ? "" : "s", outcome.limited.size()));
  }
  if (!client->tell(trial, outcome)) {
    throw UsageError(
        fmt::format("trial {} is not running, or was given to another worker", number));
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
