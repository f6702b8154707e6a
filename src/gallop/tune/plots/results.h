#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/plot/plot.h"
#include "gallop/tune/study.h"

// What plots of a study are made of. Metrics are as their users have them, not losses; what is not
// finite is left out.
namespace gallop::tune {

/// What a trial came to in one metric.
struct Result {
  const Trial* trial = nullptr;  ///< Of the study, as long as that is not changed.
  double value = 0;
};

/// Results by the number of the trial.
struct Results {
  std::vector<Result> good;        ///< Of complete trials within their limits.
  std::vector<Result> over_limit;  ///< Of complete trials above one.
  /// What pruned trials reported last; none but of the first metric, which reports are of.
  std::vector<Result> pruned;

  bool is_empty() const { return good.empty() && over_limit.empty() && pruned.empty(); }
  /// Those of complete trials.
  std::vector<Result> complete() const;
};

Results results_of(const Study& study, size_t objective);

/// Those of `good` that are better than all before them.
std::vector<Result> improvements(const Study& study, size_t objective);

/// An axis, or colors, for a metric. Where few values are far worse than the others (by Tukey's
/// outer fence, 1977: three times the distance of the quartiles beyond them), the worst of the
/// others is the bound.
plot::Axis metric_axis(const Objective& objective, const std::vector<double>& values);
plot::Color metric_color(const Objective& objective, const std::vector<double>& values);

/// An axis for a parameter: logarithmic where draws are, with its choices as categories.
plot::Axis parameter_axis(const Space& space, size_t parameter);

/// "trial 7: accuracy 0.91, optimizer.lr 0.1", for whoever points at it.
std::string result_text(const Study& study, const Result& result, size_t objective);

/// A number for each result.
using OfResult = std::function<double(const Result&)>;

/// A point for each result. Those of more than a thousand have no labels.
plot::Points points_of(const Study& study, size_t objective, const std::vector<Result>& results,
                       const OfResult& x, const OfResult& y);

/// Puts points below those that are there, unless there are none.
void add_points(plot::XyPlot& plot, plot::Points points, const char* name, plot::Shape shape,
                bool faint);

}  // namespace gallop::tune
