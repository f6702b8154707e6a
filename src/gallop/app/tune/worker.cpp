#include "gallop/app/tune/worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/tune/recipe_metrics.h"
#include "gallop/app/tune/trial_run.h"
#include "gallop/base/energy.h"
#include "gallop/base/error.h"
#include "gallop/train/train_config.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/sampler.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

constexpr auto kPause = std::chrono::milliseconds(200);
constexpr double kRounding = 1e-6;  // Tolerance of a number of evaluations.

// Checks before a study is created that the constraints allow some point.
void check_constraints(const tune::TuneRegistries& registries,
                       const tune::StudySettings& settings) {
  if (tune::name_in(settings.sampler) == "grid") {
    if (tune::make_sampler(registries, settings)->ask(tune::Study(settings), 0)) return;
    throw UsageError("sampler grid: the constraints allow no point of the grid");
  }
  tune::Random random(settings.seed, 0);
  tune::random_point(settings.space, random);
}

// Any point reveals unknown names in the command.
void check_command(const tune::StudySettings& settings, const tune::RunSpec& spec) {
  tune::Random random(settings.seed, 0);
  const tune::Space unconstrained(settings.space.parameters(), {});
  tune::command_args(spec, settings.space, tune::random_point(unconstrained, random), "");
}

ReportUnit unit_of(const train::TrainConfig& train) {
  using Unit = train::Interval::Unit;
  const train::Interval interval = train::Interval::parse(train.evaluate_every);
  switch (interval.unit) {
    case Unit::kEpochs: return {.every = interval.count, .of_epochs = true};
    case Unit::kSteps: return {.every = interval.count, .of_epochs = false};
    default: break;
  }
  throw UsageError(
      fmt::format("train.evaluate_every is '{}': trials are compared by evaluations, which must "
                  "have a fixed interval of epochs or steps",
                  train.evaluate_every));
}

// The number of evaluations of each trial of a recipe, including the final one, if its options
// determine it.
std::optional<int64_t> evaluations(const tune::StudySettings& settings,
                                   const train::TrainConfig& train) {
  const ReportUnit unit = unit_of(train);
  const bool varies = settings.space.find("train.epochs") || settings.space.find("train.steps");
  if (varies || unit.of_epochs == train.steps.has_value()) return std::nullopt;
  const double length = unit.of_epochs ? train.epochs : static_cast<double>(*train.steps);
  return static_cast<int64_t>(std::ceil(length / unit.every - kRounding));
}

// Beyond the end of its recipe a member of a population would fail, and no trial be pruned.
void check_evaluations(const tune::StudySettings& settings, const train::TrainConfig& train) {
  const auto most = evaluations(settings, train);
  const auto check = [&](const char* part, const std::string& written, const char* option) {
    const auto options = nlohmann::json::parse(written);
    const auto value = options.find(option);
    if (!most || value == options.end() || !value->is_number()) return;  // Or auto.
    if (value->get<int64_t>() <= *most) return;
    throw UsageError(
        fmt::format("{} {}: {} is evaluation {}, but the recipe ends with {}; lower it", part,
                    tune::name_in(written), option, value->get<int64_t>(), *most));
  };
  check("sampler", settings.sampler, "last");
  check("pruner", settings.pruner, "min_resource");
  check("pruner", settings.pruner, "warmup_steps");
}

void check_reports(const Registries& registries, const tune::StudySettings& settings,
                   const tune::RunSpec& spec) {
  if (spec.recipe.empty()) return;
  const ResolvedRecipe resolved = recipe_of_study(registries, settings, spec);
  warn_of_old_names(resolved);
  check_evaluations(settings, resolved.recipe.train);
}

}  // namespace

ReportUnit report_unit(const Registries& registries, const tune::StudySettings& settings,
                       const tune::RunSpec& spec) {
  if (spec.recipe.empty()) return {};
  return unit_of(recipe_of_study(registries, settings, spec).recipe.train);
}

void check_study(const Registries& registries, const tune::StudySettings& settings,
                 const RecipeMetrics& reported) {
  const tune::RunSpec spec = tune::parse_run_spec(settings.run);
  tune::make_sampler(registries.tune, settings);
  tune::make_pruner(registries.tune, settings);
  check_reports(registries, settings, spec);
  reported.check(settings);
  shared_checkpoints(settings, spec);
  check_constraints(registries.tune, settings);
  check_command(settings, spec);
  const auto& objectives = settings.objectives;
  const bool wants_joules =
      std::any_of(objectives.begin(), objectives.end(),
                  [](const auto& objective) { return objective.metric == "joules"; });
  if (wants_joules && !EnergyCounter().is_there()) {
    throw UsageError(
        "metric 'joules': this machine has no readable energy counter "
        "(/sys/class/powercap)");
  }
}

std::string completed_pruner(const Registries& registries, const tune::StudySettings& settings,
                             const tune::RunSpec& spec) {
  auto pruner = nlohmann::json::parse(settings.pruner);
  const bool promotes = tune::name_in(settings.pruner) == "asha" && pruner.contains("variant") &&
                        pruner["variant"] == "promotion";
  if (spec.recipe.empty() || !promotes || pruner.contains("max_resource")) return settings.pruner;
  const ResolvedRecipe resolved = recipe_of_study(registries, settings, spec);
  const auto last = evaluations(settings, resolved.recipe.train);
  if (last) pruner["max_resource"] = *last;
  return pruner.dump();
}

void work(tune::StudyClient& client, const std::string& name, const tune::RunSpec& spec,
          const TrialPlace& place, const TrialReports& reports, const StopRequest& stop) {
  while (!stop.requested()) {
    const tune::Assignment assignment = client.ask(name);
    switch (assignment.kind) {
      case tune::Assignment::Kind::kTrial:
        run_trial(client, spec, assignment, place, reports, stop);
        break;
      case tune::Assignment::Kind::kWait: std::this_thread::sleep_for(kPause); break;
      case tune::Assignment::Kind::kDone: return;
    }
  }
}

}  // namespace gallop::app
