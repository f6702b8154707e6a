#include "gallop/tune/plots/results.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "gallop/tune/value_word.h"

namespace gallop::tune {

namespace {

constexpr size_t kMostLabels = 1000;
constexpr size_t kFewestFenced = 8;  // Quartiles of fewer values are unreliable.

struct Bounds {
  std::optional<double> low, high;
};

// Tukey's outer fence on the side of worse values.
Bounds bounds_of(const Objective& objective, const std::vector<double>& values) {
  std::vector<double> losses;
  for (const double value : values) {
    if (std::isfinite(value)) losses.push_back(objective.signed_value(value));
  }
  if (losses.size() < kFewestFenced) return {};
  std::sort(losses.begin(), losses.end());
  const auto quartile = [&losses](size_t i) { return losses[(losses.size() - 1) * i / 4]; };
  const double spread = quartile(3) - quartile(1), fence = quartile(3) + 3 * spread;
  if (spread == 0 || losses.back() <= fence) return {};
  const double worst =
      objective.signed_value(*std::prev(std::upper_bound(losses.begin(), losses.end(), fence)));
  return objective.maximize ? Bounds{.low = worst, .high = {}} : Bounds{.low = {}, .high = worst};
}

}  // namespace

std::vector<Result> Results::complete() const {
  std::vector<Result> all;
  std::merge(good.begin(), good.end(), over_limit.begin(), over_limit.end(),
             std::back_inserter(all),
             [](const Result& a, const Result& b) { return a.trial->number < b.trial->number; });
  return all;
}

Results results_of(const Study& study, size_t objective) {
  const Objective& metric = study.settings().objectives[objective];
  Results results;
  for (const Trial& trial : study.trials()) {
    if (trial.state == TrialState::kComplete) {
      const double loss = trial.losses[objective];
      if (!std::isfinite(loss)) continue;
      (is_feasible(trial) ? results.good : results.over_limit)
          .push_back({&trial, metric.signed_value(loss)});
    } else if (trial.state == TrialState::kPruned && objective == 0 && !trial.reports.empty()) {
      const double loss = trial.reports.back().loss;
      if (std::isfinite(loss)) results.pruned.push_back({&trial, metric.signed_value(loss)});
    }
  }
  return results;
}

std::vector<Result> improvements(const Study& study, size_t objective) {
  const Objective& metric = study.settings().objectives[objective];
  std::vector<Result> best;
  for (const Result& result : results_of(study, objective).good) {
    const bool is_better =
        best.empty() || metric.signed_value(result.value) < metric.signed_value(best.back().value);
    if (is_better) best.push_back(result);
  }
  return best;
}

plot::Axis metric_axis(const Objective& objective, const std::vector<double>& values) {
  const Bounds bounds = bounds_of(objective, values);
  return {.label = objective.metric, .min = bounds.low, .max = bounds.high};
}

plot::Color metric_color(const Objective& objective, const std::vector<double>& values) {
  const Bounds bounds = bounds_of(objective, values);
  return {.label = objective.metric,
          .min = bounds.low,
          .max = bounds.high,
          .low_stands_out = !objective.maximize};
}

plot::Axis parameter_axis(const Space& space, size_t parameter) {
  plot::Axis axis{.label = space[parameter].name};
  if (const Interval* const interval = space[parameter].interval()) {
    const bool is_log = interval->scale == Scale::kLog || interval->scale == Scale::kLogNormal;
    axis.scale = is_log ? plot::Scale::kLog : plot::Scale::kLinear;
    axis.whole = interval->integer;
    return axis;
  }
  const size_t choices = space[parameter].choices()->values.size();
  for (size_t i = 0; i < choices; ++i) {
    axis.categories.push_back(value_word(space, parameter, static_cast<double>(i)));
  }
  return axis;
}

std::string result_text(const Study& study, const Result& result, size_t objective) {
  const Space& space = study.space();
  std::string text = fmt::format("trial {}: {} {:.6g}", result.trial->number,
                                 study.settings().objectives[objective].metric, result.value);
  for (size_t i = 0; i < space.size(); ++i) {
    const double value = result.trial->point[i];
    if (std::isnan(value)) continue;
    const bool is_number = space[i].interval() != nullptr;
    text += fmt::format(", {} {}", space[i].name,
                        is_number ? fmt::format("{:.6g}", value) : value_word(space, i, value));
  }
  return text;
}

plot::Points points_of(const Study& study, size_t objective, const std::vector<Result>& results,
                       const OfResult& x, const OfResult& y) {
  plot::Points points;
  for (const Result& result : results) {
    points.x.push_back(x(result));
    points.y.push_back(y(result));
    if (results.size() > kMostLabels) continue;
    points.labels.push_back(result_text(study, result, objective));
  }
  return points;
}

void add_points(plot::XyPlot& plot, plot::Points points, const char* name, plot::Shape shape,
                bool faint) {
  if (points.x.empty()) return;
  points.name = name;
  points.shape = shape;
  points.faint = faint;
  plot.points.push_back(std::move(points));
}

}  // namespace gallop::tune
