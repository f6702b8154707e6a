#include "gallop/app/tune/recipe_metrics.h"

#include <algorithm>

#include "gallop/tune/random.h"
#include "gallop/tune/sampler.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

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
                             const tune::RunSpec& spec) {
  if (spec.recipe.empty()) {
    metrics_ = train::reported_metrics(registries.metrics, train::MetricChoice(registries.metrics));
    return;
  }
  const ResolvedRecipe resolved = recipe_of_study(registries, settings, spec);
  metrics_ = train::reported_metrics(resolved.recipe.registries->metrics, resolved.recipe.metric);
}

bool RecipeMetrics::is_higher_better(std::string_view name) const {
  const auto* const metric = find(name);
  return metric != nullptr && metric->higher_is_better;
}

std::vector<std::string> RecipeMetrics::names() const {
  std::vector<std::string> names;
  for (const auto& metric : metrics_) names.push_back(metric.name);
  return names;
}

const train::ReportedMetric* RecipeMetrics::find(std::string_view name) const {
  const auto found = std::find_if(metrics_.begin(), metrics_.end(), [&](const auto& metric) {
    return metric.is_single ? name == metric.name : name.starts_with(metric.name);
  });
  return found != metrics_.end() ? &*found : nullptr;
}

}  // namespace gallop::app
