#include "gallop/app/lr_curve.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/schedule/lr_suggestion.h"

namespace gallop::app {

std::vector<std::optional<double>> suggested_lrs(const train::LrRangeTest& test) {
  std::vector<std::optional<double>> all;
  for (const auto& rule : schedule::lr_rules()) {
    all.push_back(rule.suggest(test.points));
    if (all.back()) all.back() = std::stod(fmt::format("{:.1e}", *all.back()));
  }
  return all;
}

double suggested_lr(const std::string& rule, const train::LrRangeTestConfig& config,
                    const train::LrRangeTest& test) {
  const auto found = suggested_lrs(test);
  for (size_t i = 0; i < found.size(); ++i) {
    if (schedule::lr_rules()[i].name == rule && found[i]) return *found[i];
  }
  throw DataError(fmt::format(
      "the loss does not fall between {:g} and {:g} in a way that the rule '{}' can read; try "
      "'gallop find-lr' with other --min and --max, more --rates, or another --rule",
      config.min, config.max, rule));
}

plot::XyPlot lr_curve(const std::string& recipe, const train::LrRangeTestConfig& config,
                      const train::LrRangeTest& test) {
  plot::Series losses{.name = "of a step", .x = {}, .y = {}};
  plot::Series smoothed{.name = "smoothed", .x = {}, .y = {}};
  double highest = 0;
  for (const auto& point : test.points) {
    losses.x.push_back(point.lr);
    losses.y.push_back(point.loss);
    smoothed.x.push_back(point.lr);
    smoothed.y.push_back(point.smoothed);
    highest = std::max(highest, point.smoothed);
  }
  plot::XyPlot plot{.title = recipe + ": loss by learning rate",
                    .x = {.label = "learning rate",
                          .scale = config.linear ? plot::Scale::kLinear : plot::Scale::kLog},
                    // Where training diverges, the losses of steps leave all bounds.
                    .y = {.label = "loss", .max = highest},
                    .series = {smoothed}};
  if (config.memory > 0) plot.series.push_back(losses);
  const auto found = suggested_lrs(test);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) plot.marks.push_back({.x = *found[i], .label = schedule::lr_rules()[i].name});
  }
  return plot;
}

std::string lr_curve_json(const std::string& recipe, const std::string& rule,
                          const train::LrRangeTest& test) {
  nlohmann::ordered_json object = {{"recipe", recipe}, {"diverged", test.diverged}};
  const auto found = suggested_lrs(test);
  for (size_t i = 0; i < found.size(); ++i) {
    const char* const name = schedule::lr_rules()[i].name;
    if (found[i]) object["suggestions"][name] = *found[i];
    if (found[i] && name == rule) object["lr"] = *found[i];
  }
  if (const auto range = schedule::range_of_fall(test.points)) {
    object["range"] = {range->min, range->max};
  }
  for (const auto& point : test.points) {
    object["points"].push_back(
        {{"lr", point.lr}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  }
  return object.dump();
}

}  // namespace gallop::app
