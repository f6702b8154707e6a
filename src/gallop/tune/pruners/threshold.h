#pragma once

#include <optional>

#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/checks.h"

namespace gallop::tune {

/// A trial is pruned whose last report is NaN or beyond a bound. Bounds are values of the metric,
/// also where it is to be large.
struct ThresholdConfig {
  std::optional<double> lower, upper;  ///< At least one.
  CheckTimes times;
};

void visit(config::Visitor& visitor, ThresholdConfig& config);
std::unique_ptr<Pruner> make_threshold(const ThresholdConfig& config,
                                       const StudySettings& settings);

}  // namespace gallop::tune
