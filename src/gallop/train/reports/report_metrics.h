#pragma once

#include "gallop/train/metrics/metric_set.h"

namespace gallop::train {

/// The metrics whose figures an evaluation report shows, by the kind of targets. With very many
/// classes, those that would need too much memory are left out.
Metrics report_metrics_for(const MetricTask& task);

}  // namespace gallop::train
