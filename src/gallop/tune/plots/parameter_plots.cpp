#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/tune/importance/importance.h"
#include "gallop/tune/plots/results.h"
#include "gallop/tune/plots/study_plots.h"

namespace gallop::tune {

namespace {

double number_of(const Result& result) { return static_cast<double>(result.trial->number); }
double value_of(const Result& result) { return result.value; }

OfResult value_at_point(size_t parameter) {
  return [parameter](const Result& result) { return result.trial->point[parameter]; };
}

// The results at whose points these parameters are active.
std::vector<Result> with(std::vector<Result> results, const std::vector<size_t>& parameters) {
  std::erase_if(results, [&](const Result& result) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](size_t i) { return std::isnan(result.trial->point[i]); });
  });
  return results;
}

std::vector<double> numbers(const std::vector<Result>& results, const OfResult& number) {
  std::vector<double> all;
  for (const Result& result : results) all.push_back(number(result));
  return all;
}

}  // namespace

plot::ParallelPlot parallel_plot(const Study& study, size_t objective,
                                 const std::vector<size_t>& parameters) {
  const Objective& metric = study.settings().objectives[objective];
  const auto results = results_of(study, objective).good;
  plot::ParallelPlot plot;
  plot.title = metric.metric + " by all parameters";
  plot.values = numbers(results, value_of);
  plot.axes = {metric_axis(metric, plot.values)};
  plot.color = metric_color(metric, plot.values);
  for (const size_t i : parameters) plot.axes.push_back(parameter_axis(study.space(), i));
  for (const Result& result : results) {
    std::vector<double> row = {result.value};
    for (const size_t i : parameters) row.push_back(result.trial->point[i]);
    plot.rows.push_back(std::move(row));
  }
  plot.labels = points_of(study, objective, results, number_of, value_of).labels;
  return plot;
}

plot::XyPlot slice_plot(const Study& study, size_t objective, size_t parameter) {
  const Objective& metric = study.settings().objectives[objective];
  const Results results = results_of(study, objective);
  plot::XyPlot plot;
  plot.title = study.space()[parameter].name;
  plot.x = parameter_axis(study.space(), parameter);
  plot.x.label.clear();
  plot.y = metric_axis(metric, numbers(results.complete(), value_of));
  plot.color = {.label = "trial", .whole = true};
  const auto points = [&](const std::vector<Result>& some) {
    return points_of(study, objective, with(some, {parameter}), value_at_point(parameter),
                     value_of);
  };
  plot::Points good = points(results.good);
  good.values = numbers(with(results.good, {parameter}), number_of);
  add_points(plot, std::move(good), "complete", plot::Shape::kDot, false);
  add_points(plot, points(results.over_limit), "over limit", plot::Shape::kCross, true);
  return plot;
}

plot::XyPlot contour_plot(const Study& study, size_t objective, size_t across, size_t up) {
  const Objective& metric = study.settings().objectives[objective];
  const Results results = results_of(study, objective);
  const auto complete = with(results.complete(), {across, up});
  const OfResult x = value_at_point(across), y = value_at_point(up);
  plot::XyPlot plot;
  plot.title = fmt::format("{} by {} and {}", metric.metric, study.space()[across].name,
                           study.space()[up].name);
  plot.x = parameter_axis(study.space(), across);
  plot.y = parameter_axis(study.space(), up);
  plot.surface =
      plot::Surface{numbers(complete, x), numbers(complete, y), numbers(complete, value_of)};
  plot.color = metric_color(metric, plot.surface->values);
  auto others = with(results.good, {across, up});
  const auto best =
      std::min_element(others.begin(), others.end(), [&](const Result& one, const Result& other) {
        return metric.signed_value(one.value) < metric.signed_value(other.value);
      });
  const auto points = [&](const std::vector<Result>& some) {
    return points_of(study, objective, some, x, y);
  };
  if (best != others.end()) {
    add_points(plot, points({*best}), "best", plot::Shape::kDot, false);
    others.erase(best);
  }
  add_points(plot, points(others), "complete", plot::Shape::kRing, true);
  add_points(plot, points(with(results.over_limit, {across, up})), "over limit",
             plot::Shape::kCross, true);
  return plot;
}

plot::BarPlot importance_plot(const Study& study, size_t objective,
                              const std::vector<size_t>& parameters) {
  const std::vector<double> shares = ped_anova(study, {.objective = objective});
  std::vector<size_t> order = parameters;
  std::stable_sort(order.begin(), order.end(),
                   [&shares](size_t a, size_t b) { return shares[a] > shares[b]; });
  plot::BarPlot plot;
  plot.title = "importance for " + study.settings().objectives[objective].metric;
  for (const size_t i : order) {
    plot.bars.push_back(
        {study.space()[i].name, shares[i], fmt::format("{:.1f} %", 100 * shares[i])});
  }
  return plot;
}

}  // namespace gallop::tune
