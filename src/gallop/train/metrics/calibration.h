#pragma once

#include <memory>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

struct CalibrationConfig {
  int64_t bins = 15;
};
void visit(config::Visitor& visitor, CalibrationConfig& config);

/// The expected calibration error (Naeini et al., 2015; Guo et al., 2017): predictions are grouped
/// by their confidence, the highest probability, into bins of equal width that exclude their lower
/// edge. It is the mean over predictions of the distance of a bin's accuracy from its mean
/// confidence. Each label of a sample is a prediction of its presence. Throws UsageError if targets
/// are numbers.
std::unique_ptr<Metric> make_calibration_error(const CalibrationConfig& config,
                                               const MetricTask& task);

}  // namespace gallop::train
