#include "gallop/app/tune/recipe_metrics.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gallop/app/recipe_components.h"
#include "gallop/app/run_inputs.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/random.h"
#include "gallop/tune/sampler.h"
#include "gallop/tune/target_metric.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

constexpr std::array kOfTrials = {"training_seconds", "seconds", "memory_bytes", "joules"};

bool is_of_trials(std::string_view metric) {
  return std::find(kOfTrials.begin(), kOfTrials.end(), metric) != kOfTrials.end();
}

// The base metric: "dice" for "best_dice" and for "seconds to dice 0.9".
std::string plain_name(const std::string& metric) {
  const auto target = tune::parse_target_metric(metric);
  std::string plain = target ? target->metric : metric;
  constexpr std::string_view kBest = "best_";
  return plain.starts_with(kBest) ? plain.substr(kBest.size()) : plain;
}

std::vector<std::string> metrics_of(const tune::StudySettings& settings) {
  std::vector<std::string> names;
  for (const auto& objective : settings.objectives) names.push_back(objective.metric);
  for (const auto& limit : settings.limits) names.push_back(limit.metric);
  return names;
}

}  // namespace

ResolvedRecipe recipe_of_study(const Registries& registries, const tune::StudySettings& settings,
                               const tune::RunSpec& spec) {
  tune::Random random(settings.seed, 0);
  const tune::Point point = tune::random_point(settings.space, random);
  std::vector<Override> overrides;
  for (const std::string& option : tune::recipe_options(spec, settings.space, point)) {
    const size_t equals = option.find('=');
    overrides.push_back(Override::parse(option.substr(0, equals), option.substr(equals + 1)));
  }
  return read_recipe(registries, spec.recipe, overrides);
}

RecipeMetrics::RecipeMetrics(const Registries& registries, const tune::StudySettings& settings,
                             const tune::RunSpec& spec)
    : is_recipe_(!spec.recipe.empty()) {
  if (!is_recipe_) {
    metrics_ = train::reported_metrics(registries.metrics, train::MetricChoice(registries.metrics));
    return;
  }
  const ResolvedRecipe resolved = recipe_of_study(registries, settings, spec);
  const Recipe& recipe = resolved.recipe;
  metrics_ = train::reported_metrics(recipe.registries->metrics, recipe.metric);
  if (depends_on_task(settings)) add_task(recipe);
}

// Every task reports the loss, and the recipe may add metrics of its task.
bool RecipeMetrics::depends_on_task(const tune::StudySettings& settings) const {
  const auto names = metrics_of(settings);
  return settings.objectives.empty() ||
         std::any_of(names.begin(), names.end(), [this](const std::string& name) {
           const std::string plain = plain_name(name);
           const bool is_of_classes = plain == "accuracy" || plain == "top5";
           return !is_of_trials(name) && (is_of_classes || find(plain) == nullptr);
         });
}

// Data that cannot be opened here, such as on a cluster's login node, may be available to the
// trials.
void RecipeMetrics::add_task(const Recipe& recipe) {
  std::string name = recipe.data.task;
  if (name == "auto") {
    try {
      name = read_data(*recipe.registries, recipe)->signature.task;
    } catch (const Error& error) {
      why_no_task_ = error.what();
      return;
    }
  }
  const train::Task& task = recipe.registries->tasks.find(name);
  const train::MetricRegistry& metrics = recipe.registries->metrics;
  const train::MetricChoice choice = metrics_for(recipe.metric, task);
  metrics_ = train::reported_metrics(metrics, choice, task.target);
  deciding_ = train::deciding_metric(metrics, choice, task.target);
}

const std::string& RecipeMetrics::deciding() const {
  if (!deciding_.empty()) return deciding_;
  throw UsageError(
      fmt::format("the sweep has no 'metric', and the recipe's default depends on data that cannot "
                  "be opened ({}); set 'metric' in the sweep, or data.task in the recipe",
                  why_no_task_));
}

void RecipeMetrics::check(const tune::StudySettings& settings) const {
  for (const std::string& metric : metrics_of(settings)) {
    const std::string plain = plain_name(metric);
    const bool is_known = find(plain) != nullptr || is_of_trials(metric);
    if (!(is_recipe_ ? is_known : !plain.empty())) refuse(metric, plain);
  }
}

void RecipeMetrics::refuse(const std::string& metric, std::string_view plain) const {
  std::vector<std::string> names;
  for (const auto& one : metrics_) names.push_back(one.name);
  const std::string nearest = nearest_name(std::string(plain), names);
  const std::string& example = names.size() > 1 ? names[1] : names[0];
  throw UsageError(fmt::format(
      "metric '{}'{}: the recipe has {}, each also as best_{} and as 'seconds to {} 0.9', and "
      "training_seconds, seconds, memory_bytes and joules; others are added by its "
      "train.metrics{}",
      printable(metric), nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
      join_names(names, "and"), example, example,
      why_no_task_.empty()
          ? ""
          : fmt::format(". The metrics of its task are unknown, as its data cannot be opened: {}",
                        why_no_task_)));
}

bool RecipeMetrics::is_higher_better(std::string_view name) const {
  const auto* const metric = find(name);
  return metric != nullptr && metric->higher_is_better;
}

const train::ReportedMetric* RecipeMetrics::find(std::string_view name) const {
  const auto found = std::find_if(metrics_.begin(), metrics_.end(), [&](const auto& metric) {
    return metric.is_single ? name == metric.name : name.starts_with(metric.name);
  });
  return found != metrics_.end() ? &*found : nullptr;
}

}  // namespace gallop::app
