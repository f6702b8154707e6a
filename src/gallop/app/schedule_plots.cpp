#include "gallop/app/schedule_plots.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/app/option_of.h"
#include "gallop/app/parameter_schedules.h"
#include "gallop/app/recipe_components.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

namespace {

constexpr int kPoints = 2000;

// The run length from the recipe alone, in epochs or in steps.
schedule::RunLength length_without_data(const train::TrainConfig& config) {
  if (config.steps) return {.samples = static_cast<double>(*config.steps), .batch = 1};
  return {.samples = config.epochs, .samples_per_epoch = 1};
}

// The run length if the schedule needs the size of the data.
schedule::RunLength length_with_data(const Registries& registries, const ResolvedRecipe& resolved) {
  if (resolved.is_auto("data", "batch_size") && resolved.recipe.data.max_tokens == 0) {
    throw UsageError(
        "the schedule counts in steps or epochs that data.batch_size: auto leaves open; to draw "
        "it, "
        "give a number, such as data.batch_size=128");
  }
  const Recipe& recipe = resolved.recipe;
  const auto data = open_data(registries, recipe);
  const int64_t size = data->train->size();
  const int64_t batches = data->batches ? data->batches->batches() : 0;
  const int64_t batch = batches > 0 ? std::max<int64_t>(1, size / batches) : recipe.data.batch_size;
  return train::Length::of(recipe.train, train::new_history(recipe.train, batch, size, batches))
      .for_schedules();
}

// Whether the learning rate depends on a batch size that is not resolved yet.
bool waits_for_batch(const ResolvedRecipe& resolved) {
  return resolved.recipe.lr_scaling.scales() && resolved.is_auto("data", "batch_size");
}

double base_lr(const ResolvedRecipe& resolved) {
  if (resolved.is_auto("optimizer", "lr") || waits_for_batch(resolved)) return 1;
  const Recipe& recipe = resolved.recipe;
  return option_of(recipe.optimizer, "lr").value_or(1) *
         recipe.lr_scaling.factor(recipe.data.batch_size);
}

// "weight decay"
std::string label_of(train::ScheduledParameter value) {
  std::string label = train::name_of(value);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

// `value` as a function of progress over a run that ends at `end`. The last step precedes the end,
// where another cycle would start.
template <typename Function>
plot::Series curve(double end, Function value) {
  plot::Series series;
  for (int i = 0; i <= kPoints; ++i) {
    const double progress = static_cast<double>(i) / kPoints;
    series.x.push_back(end * progress);
    series.y.push_back(value(std::min(progress, 1 - 1e-9)));
  }
  return series;
}

std::vector<plot::XyPlot> plots_of(const Registries& registries, const ResolvedRecipe& resolved,
                                   const schedule::RunLength& length) {
  const Recipe& recipe = resolved.recipe;
  const auto schedule = registries.schedules.build(recipe.schedule, length);
  const plot::Axis x{recipe.train.steps ? "step" : "epoch"}, from_zero{.label = "", .min = 0.};
  const double end = length_without_data(recipe.train).samples, lr = base_lr(resolved);
  const auto title = [](const std::string& value, const std::string& name,
                        const schedule::Schedule& one) {
    return fmt::format("{}, {}{}", value, name,
                       one.state().empty() ? "" : " (assuming that evaluations improve)");
  };
  const char* const lr_title =
      resolved.is_auto("optimizer", "lr") ? "learning rate relative to the one to be found"
      : waits_for_batch(resolved) ? "learning rate relative to that of the batch size to be found"
                                  : "learning rate";
  std::vector<plot::XyPlot> plots = {
      {title(lr_title, recipe.schedule.name(), *schedule), x, from_zero, {curve(end, [&](double p) {
         return lr * schedule->factor(p);
       })}}};
  const ParameterSchedules scheduled(recipe, length, *schedule);
  for (const ParameterSchedules::One& one : scheduled.all()) {
    const auto values = curve(end, [&](double p) { return scheduled.at(one, p); });
    if (one.scheduled_value) {
      plots.push_back({title(label_of(one.value), one.name, one.scheduled_value->schedule()),
                       x,
                       from_zero,
                       {values}});
    } else {
      plots.push_back({label_of(one.value), x, {}, {values}});
    }
  }
  return plots;
}

}  // namespace

std::vector<plot::XyPlot> schedule_plots(const Registries& registries,
                                         const ResolvedRecipe& resolved) {
  try {
    return plots_of(registries, resolved, length_without_data(resolved.recipe.train));
  } catch (const schedule::UnknownLength&) {
    return plots_of(registries, resolved, length_with_data(registries, resolved));
  }
}

std::vector<plot::XyPlot> all_schedules(const Registries& registries) {
  const schedule::RunLength length{
      .samples = 1000, .samples_per_epoch = 100, .batch = 1, .batches_per_epoch = 100};
  std::vector<plot::XyPlot> plots;
  for (const auto& member : registries.schedules.members()) {
    std::unique_ptr<schedule::Schedule> schedule;
    try {
      schedule = registries.schedules.build({registries.schedules, member.name}, length);
    } catch (const UsageError&) {
      continue;  // Requires options.
    }
    if (!schedule->state().empty()) continue;
    plots.push_back({member.name,
                     {},
                     {.label = "", .min = 0., .max = 1.},
                     {curve(10, [&](double p) { return schedule->factor(p); })}});
  }
  return plots;
}

}  // namespace gallop::app
