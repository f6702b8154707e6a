#pragma once

#include <optional>

#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/checks.h"

namespace gallop::tune {

/// Prunes a trial whose last report is NaN or out of bounds. Bounds are values of the metric, even
/// if it is maximized.
struct ThresholdConfig {
  std::optional<double> lower, upper;  ///< At least one is given.
  CheckTimes times;
};

void visit(config::Visitor& visitor, ThresholdConfig& config);
std::unique_ptr<Pruner> make_threshold(const ThresholdConfig& config,
                                       const StudySettings& settings);

}  // namespace gallop::tune
