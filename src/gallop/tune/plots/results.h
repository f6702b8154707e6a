#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/plot/plot.h"
#include "gallop/tune/study.h"

// The data of study plots. Values are metrics as the user defined them, not losses; non-finite ones
// are omitted.
namespace gallop::tune {

/// The result of a trial in one metric.
struct Result {
  const Trial* trial = nullptr;  ///< Belongs to the study; valid until that changes.
  double value = 0;
};

/// Results, ordered by trial number.
struct Results {
  std::vector<Result> good;        ///< Complete trials within their limits.
  std::vector<Result> over_limit;  ///< Complete trials above a limit.
  /// The last reports of pruned trials; empty unless the metric is the first one, which is
  /// reported.
  std::vector<Result> pruned;

  bool is_empty() const { return good.empty() && over_limit.empty() && pruned.empty(); }
  /// The results of all complete trials.
  std::vector<Result> complete() const;
};

Results results_of(const Study& study, size_t objective);

/// The items of `good` that improve on all before them.
std::vector<Result> improvements(const Study& study, size_t objective);

/// An axis or color scale for a metric. If at most a few values are outliers on the worse side,
/// beyond Tukey's outer fence (1977: three times the interquartile range), the axis ends at the
/// worst of the others.
plot::Axis metric_axis(const Objective& objective, const std::vector<double>& values);
plot::Color metric_color(const Objective& objective, const std::vector<double>& values);

/// An axis for a parameter: logarithmic if sampling is, choices as categories.
plot::Axis parameter_axis(const Space& space, size_t parameter);

/// The tooltip of a result: "trial 7: accuracy 0.91, optimizer.lr 0.1".
std::string result_text(const Study& study, const Result& result, size_t objective);

/// A function of a result.
using OfResult = std::function<double(const Result&)>;

/// One point per result; without labels for more than a thousand.
plot::Points points_of(const Study& study, size_t objective, const std::vector<Result>& results,
                       const OfResult& x, const OfResult& y);

/// Adds points below the existing ones; does nothing if there are none.
void add_points(plot::XyPlot& plot, plot::Points points, const char* name, plot::Shape shape,
                bool faint);

}  // namespace gallop::tune
