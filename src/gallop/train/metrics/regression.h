#pragma once

#include <memory>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// These throw UsageError if targets are not numbers. For targets [N, D], the mean over D.
std::unique_ptr<Metric> make_mse(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_rmse(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_mae(const NoMetricOptions& config, const MetricTask& task);
/// The coefficient of determination, of at least two targets. If all targets of a column are equal:
/// 1 for exact predictions, else 0, as in scikit-learn.
std::unique_ptr<Metric> make_r2(const NoMetricOptions& config, const MetricTask& task);

}  // namespace gallop::train
