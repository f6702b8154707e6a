#include "gallop/app/tune/worker.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "gallop/app/recipe.h"
#include "gallop/app/tune/trial_run.h"
#include "gallop/base/energy.h"
#include "gallop/base/error.h"
#include "gallop/train/train_config.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/sampler.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_words.h"

namespace gallop::app {

namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

std::vector<Override> overrides_of(const std::vector<std::string>& options) {
  std::vector<Override> overrides;
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    overrides.push_back({option.substr(0, equals), option.substr(equals + 1)});
  }
  return overrides;
}

// That the constraints allow something is known before a study is made.
void check_constraints(const tune::StudySettings& settings) {
  if (tune::name_in(settings.sampler) == "grid") {
    if (tune::make_sampler(settings)->ask(tune::Study(settings), 0)) return;
    throw UsageError("sampler grid: the constraints allow no point of the grid");
  }
  tune::Random random(settings.seed, 0);
  tune::random_point(settings.space, random);
}

// Any point shows whether its words name what there is.
void check_command(const tune::StudySettings& settings, const tune::RunSpec& spec) {
  tune::Random random(settings.seed, 0);
  const tune::Space unconstrained(settings.space.parameters(), {});
  tune::command_words(spec, settings.space, tune::random_point(unconstrained, random), "",
                      tune::Variables::kFilled);
}

}  // namespace

ReportUnit report_unit(const tune::StudySettings& settings, const tune::RunSpec& spec) {
  if (spec.recipe.empty()) return {};
  tune::Random random(settings.seed, 0);
  const tune::Point point = tune::random_point(settings.space, random);
  const Families families;
  const auto resolved =
      load_recipe(families, spec.recipe, overrides_of(recipe_options(spec, settings.space, point)));
  using Unit = train::Interval::Unit;
  const train::Interval interval = train::Interval::parse(resolved.recipe.train.evaluate_every);
  switch (interval.unit) {
    case Unit::kEpochs: return {.every = interval.count, .of_epochs = true};
    case Unit::kSteps: return {.every = interval.count, .of_epochs = false};
    default: break;
  }
  throw UsageError(
      fmt::format("train.evaluate_every is '{}': trials are compared by evaluations, which must "
                  "come every so many epochs or steps",
                  resolved.recipe.train.evaluate_every));
}

void check_study(const tune::StudySettings& settings) {
  const tune::RunSpec spec = tune::parse_run_spec(settings.run);
  tune::make_sampler(settings);
  tune::make_pruner(settings);
  const TrialMetrics metrics(settings, spec, report_unit(settings, spec));
  shared_checkpoints(settings, spec);
  check_constraints(settings);
  check_command(settings, spec);
  const auto& objectives = settings.objectives;
  const bool wants_joules =
      std::any_of(objectives.begin(), objectives.end(),
                  [](const auto& objective) { return objective.metric == "joules"; });
  if (wants_joules && !EnergyCounter().is_there()) {
    throw UsageError(
        "metric 'joules': this machine has no counter of energy that can be read "
        "(/sys/class/powercap)");
  }
}

void work(tune::Broker& broker, const std::string& name, const tune::RunSpec& spec,
          const TrialPlace& place, const ReportUnit& unit, const StopRequest& stop) {
  while (!stop.requested()) {
    const tune::Assignment assignment = broker.ask(name);
    switch (assignment.kind) {
      case tune::Assignment::Kind::kTrial:
        run_trial(broker, spec, assignment, place, unit, stop);
        break;
      case tune::Assignment::Kind::kWait: std::this_thread::sleep_for(kPause); break;
      case tune::Assignment::Kind::kDone: return;
    }
  }
}

}  // namespace gallop::app
