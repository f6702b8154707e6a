#pragma once

#include <string>
#include <vector>

#include "gallop/ui/api/query.h"
#include "gallop/ui/curve.h"
#include "gallop/ui/history.h"
#include "gallop/ui/runs.h"

namespace gallop::ui::api {

/// What is asked of the lines of several runs.
struct LineQuestion {
  std::string metric;
  CurveAxis axis = CurveAxis::kStep;
};

/// The values `metric` and `axis` of a query, and `smoothing`, from 0 to 1. Throw UsageError.
LineQuestion question_of(const Query& query);
double smoothing_of(const Query& query);

/// A run's points of one metric on an axis; empty where it has none.
struct RunLine {
  std::string run;
  Line line;
  MetricPoints points;
  std::string trouble{};  ///< Why it has none, where the run cannot be read.
};

/// By the run's recipe, samples are steps times data.batch_size, tokens samples times data.context.
/// Throws DataError where its log cannot be read, or its recipe does not say what the axis needs.
RunLine line_of(Runs& runs, const std::string& run, const LineQuestion& question);

/// The lines of runs by name, those too that cannot be read. Throws UsageError where none of them
/// has the metric, with the nearest name, and as line_of() does where none of them can be read.
std::vector<RunLine> lines_of(Runs& runs, const std::vector<std::string>& names,
                              const LineQuestion& question);

}  // namespace gallop::ui::api
