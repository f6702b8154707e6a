#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gallop/tune/plots/results.h"
#include "gallop/tune/plots/study_plots.h"

namespace gallop::tune {

namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

double number_of(const Result& result) { return static_cast<double>(result.trial->number); }
double value_of(const Result& result) { return result.value; }

// A step function of the best value so far.
plot::Series steps_of(const std::vector<Result>& best, double last_number) {
  plot::Series steps{.name = "best so far", .x = {}, .y = {}};
  for (const Result& result : best) {
    if (!steps.y.empty()) {
      steps.x.push_back(number_of(result));
      steps.y.push_back(steps.y.back());
    }
    steps.x.push_back(number_of(result));
    steps.y.push_back(result.value);
  }
  if (!steps.x.empty() && steps.x.back() < last_number) {
    steps.x.push_back(last_number);
    steps.y.push_back(steps.y.back());
  }
  return steps;
}

double last_number(const Results& results) {
  double last = 0;
  for (const auto* some : {&results.good, &results.over_limit, &results.pruned}) {
    if (!some->empty()) last = std::max(last, number_of(some->back()));
  }
  return last;
}

}  // namespace

plot::XyPlot history_plot(const Study& study, size_t objective) {
  const Objective& metric = study.settings().objectives[objective];
  const Results results = results_of(study, objective);
  std::vector<double> values;
  for (const auto* some : {&results.good, &results.over_limit, &results.pruned}) {
    for (const Result& result : *some) values.push_back(result.value);
  }
  plot::XyPlot plot;
  plot.title = metric.metric + " by trial";
  plot.x = {.label = "trial", .whole = true};
  plot.y = metric_axis(metric, values);
  const auto best = improvements(study, objective);
  if (!best.empty()) plot.series.push_back(steps_of(best, last_number(results)));
  const auto add = [&](const std::vector<Result>& some, const char* name, plot::Shape shape,
                       bool faint) {
    add_points(plot, points_of(study, objective, some, number_of, value_of), name, shape, faint);
  };
  add(results.good, "complete", plot::Shape::kDot, false);
  add(results.over_limit, "over limit", plot::Shape::kRing, true);
  add(results.pruned, "pruned", plot::Shape::kCross, true);
  return plot;
}

plot::XyPlot intermediate_plot(const Study& study) {
  const Objective& metric = study.settings().objectives[0];
  enum Kind : size_t { kBest, kComplete, kRunning, kPruned, kKinds };
  std::vector<plot::Series> lines(kKinds);
  lines[kBest].name = "best";
  lines[kComplete].name = "complete";
  lines[kRunning].name = "running";
  lines[kPruned].name = "pruned";
  lines[kComplete].weight = lines[kRunning].weight = plot::Weight::kThin;
  lines[kPruned].weight = plot::Weight::kFaint;
  std::vector<double> values;
  const auto kind_of = [&study](const Trial& trial) {
    if (study.best() == trial.number) return kBest;
    if (trial.state == TrialState::kComplete) return kComplete;
    return trial.state == TrialState::kPruned ? kPruned : kRunning;
  };
  for (const Trial& trial : study.trials()) {
    if (trial.state == TrialState::kFailed) continue;
    plot::Series& line = lines[kind_of(trial)];
    bool is_empty = true;
    for (const Report& report : trial.reports) {
      if (!std::isfinite(report.loss)) continue;
      if (is_empty && !line.x.empty()) {
        line.x.push_back(kGap);
        line.y.push_back(kGap);
      }
      is_empty = false;
      values.push_back(metric.signed_value(report.loss));
      line.x.push_back(static_cast<double>(report.step));
      line.y.push_back(values.back());
    }
  }
  std::erase_if(lines, [](const plot::Series& line) { return line.x.empty(); });
  plot::XyPlot plot;
  plot.title = metric.metric + " by report";
  plot.x = {.label = "report", .whole = true};
  plot.y = metric_axis(metric, values);
  plot.series = std::move(lines);
  return plot;
}

plot::XyPlot pareto_plot(const Study& study, size_t across, size_t up) {
  const Objective &a = study.settings().objectives[across], &b = study.settings().objectives[up];
  const auto front = study.pareto_front();
  const auto is_best = [&front](const Result& result) {
    return std::binary_search(front.begin(), front.end(), result.trial->number);
  };
  const auto finite = [&](std::vector<Result> results) {
    std::erase_if(results,
                  [up](const Result& result) { return !std::isfinite(result.trial->losses[up]); });
    return results;
  };
  const Results results = results_of(study, across);
  std::vector<Result> best, others;
  for (const Result& result : finite(results.good)) {
    (is_best(result) ? best : others).push_back(result);
  }
  const auto up_of = [&](const Result& result) { return b.signed_value(result.trial->losses[up]); };
  plot::XyPlot plot;
  plot.title = fmt::format("{} and {}", a.metric, b.metric);
  plot.x = {.label = a.metric};
  plot.y = {.label = b.metric};
  const auto add = [&](const std::vector<Result>& some, const char* name, plot::Shape shape,
                       bool faint) {
    add_points(plot, points_of(study, across, some, value_of, up_of), name, shape, faint);
  };
  add(best, "Pareto front", plot::Shape::kDot, false);
  add(others, "dominated", plot::Shape::kRing, true);
  add(finite(results.over_limit), "over limit", plot::Shape::kCross, true);
  if (study.objectives() > 2) return plot;
  // The boundary of the dominated region, a staircase through the front.
  std::sort(best.begin(), best.end(), [across](const Result& one, const Result& other) {
    return one.trial->losses[across] < other.trial->losses[across];
  });
  plot::Series border{.name = "reached", .x = {}, .y = {}};
  for (const Result& result : best) {
    if (!border.x.empty()) {
      border.x.push_back(result.value);
      border.y.push_back(border.y.back());
    }
    border.x.push_back(result.value);
    border.y.push_back(up_of(result));
  }
  plot.series = {std::move(border)};
  return plot;
}

}  // namespace gallop::tune
