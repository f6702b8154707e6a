#include "gallop/app/tune/trial_command.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/renamed_options.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

// Pipe capacity for the output of a training, so that it can finish while its worker is suspended;
// whoever resumes the trial waits for that. With 64 workers, half of a user's pipe limit on Linux.
constexpr int kUnreadBytes = 512 << 10;

// Whether two values may train identically for some steps.
bool matters_later(const tune::Parameter& parameter) {
  const std::string name = config::current_path(parameter.name);
  return name == "train.epochs" || name == "train.steps" || name == "schedule" ||
         name == "schedules" || name.starts_with("schedule.") || name.starts_with("schedules.");
}

}  // namespace

fs::path TrialPlace::run(int64_t trial) const {
  return study / "runs" / fmt::format("{:04}", trial);
}

fs::path TrialPlace::output(int64_t trial) const {
  return study / "output" / fmt::format("{:04}.log", trial);
}

int64_t shared_checkpoints(const tune::StudySettings& settings, const tune::RunSpec& spec) {
  const int64_t count = spec.share.value_or(tune::kUsualShare);
  if (spec.recipe.empty() || count == 0) return 0;
  std::vector<std::string> metrics;
  for (const auto& objective : settings.objectives) metrics.push_back(objective.metric);
  for (const auto& limit : settings.limits) metrics.push_back(limit.metric);
  for (const std::string& metric : metrics) {
    if (metric != "seconds" && metric != "joules" && metric != "memory_bytes") continue;
    if (!spec.share) return 0;
    throw UsageError(fmt::format(
        "share: '{}' measures a trial's own process, which does less work if steps are shared; "
        "remove one of them",
        metric));
  }
  const auto& parameters = settings.space.parameters();
  return std::any_of(parameters.begin(), parameters.end(), matters_later) ? count : 0;
}

ChildCommand trial_command(const tune::StudySettings& settings, const tune::RunSpec& spec,
                           const tune::Assignment& assignment, const TrialPlace& place,
                           const ReportUnit& unit) {
  const tune::Trial& trial = assignment.trial;
  const fs::path run = place.run(trial.number);
  ChildCommand command;
  command.variables = place.variables;
  command.without = place.without;
  command.cores = place.cores;
  command.keep_output = command.own_group = command.with_warden = true;
  command.unread_bytes = kUnreadBytes;
  command.input.emplace();  // A background process group cannot read from the terminal.
  if (spec.recipe.empty()) {
    std::vector<std::string> args =
        tune::command_args(spec, settings.space, trial.point, run.string());
    command.program = args.front();
    command.arguments.assign(args.begin() + 1, args.end());
    command.variables["GALLOP_TRIAL_NUMBER"] = std::to_string(trial.number);
    command.variables["GALLOP_TRIAL_FOLDER"] = run.string();
    if (trial.last_step > 0) {
      command.variables["GALLOP_TRIAL_LAST_STEP"] = std::to_string(trial.last_step);
    }
    if (!assignment.parent_folder.empty()) {
      command.variables["GALLOP_TRIAL_PARENT_FOLDER"] = assignment.parent_folder;
    }
    return command;
  }
  command.arguments = {"train",      spec.recipe,
                       "--runs",     run.parent_path().string(),
                       "--name",     run.filename().string(),
                       "--continue", "--json"};
  const auto add = [&](const char* option, const std::string& value) {
    command.arguments.insert(command.arguments.end(), {option, value});
  };
  if (trial.last_step > 0) add("--until", unit.until(trial.last_step));
  if (!assignment.parent_folder.empty()) {
    add("--from", assignment.parent_folder);
  } else if (const int64_t kept = shared_checkpoints(settings, spec); kept > 0) {
    add("--share", std::to_string(kept));
  }
  for (std::string& word : tune::recipe_options(spec, settings.space, trial.point)) {
    command.arguments.push_back(std::move(word));
  }
  return command;
}

}  // namespace gallop::app
