#pragma once

#include <string>
#include <vector>

#include "gallop/ui/api/query.h"
#include "gallop/ui/curve.h"
#include "gallop/ui/history.h"
#include "gallop/ui/runs.h"

namespace gallop::ui::api {

/// The query of the lines of several runs.
struct LineQuestion {
  std::string metric;
  CurveAxis axis = CurveAxis::kStep;
};

/// Parses `metric`, `axis` and `smoothing` (0 to 1) of a query. Throws UsageError.
LineQuestion question_of(const Query& query);
double smoothing_of(const Query& query);

/// The points of one metric of a run along an axis; empty if it has none.
struct RunLine {
  std::string run;
  Line line;
  MetricPoints points;
  std::string trouble{};  ///< Why the run could not be read; empty otherwise.
};

/// Samples are steps times data.batch_size of the run's recipe, tokens are samples times
/// data.context. Throws DataError if its log cannot be read, or its recipe lacks what the axis
/// needs.
RunLine line_of(Runs& runs, const std::string& run, const LineQuestion& question);

/// The lines of runs by name, including unreadable ones. Throws UsageError, with the nearest name,
/// if none of them has the metric, and the errors of line_of() if none of them can be read.
std::vector<RunLine> lines_of(Runs& runs, const std::vector<std::string>& names,
                              const LineQuestion& question);

}  // namespace gallop::ui::api
