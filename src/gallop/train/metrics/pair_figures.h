#pragma once

#include <memory>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The recall at k of pairs, as make_recall_at_k() computes it, for k = 1, 2, 5, 10, ..., and a
/// histogram of their similarities: figures without a value. Throws UsageError if targets are not
/// pairs.
std::unique_ptr<Metric> make_pair_figures(const MetricTask& task);

}  // namespace gallop::train
