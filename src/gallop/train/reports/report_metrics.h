#pragma once

#include "gallop/train/metrics/metric_set.h"

namespace gallop::train {

/// The metrics whose figures an evaluation report has, by what the targets are. Of very many
/// classes without those that would need too much memory.
Metrics report_metrics_for(const MetricTask& task);

}  // namespace gallop::train
