#pragma once

#include <string>

#include "gallop/train/metrics/metric.h"
#include "gallop/train/reports/report.h"
#include "gallop/train/tasks/prediction.h"

// What a task has by default, which follows from the kind of its targets.
namespace gallop::train {

/// The name of the loss.
std::string default_loss(MetricTask::Target target);

/// The name of the metric: "auto", the accuracy of classes and the loss of tokens, numbers and
/// pairs; "f1" for targets of 0 and 1; "label-error-rate" for sequences.
std::string default_metric(MetricTask::Target target);

/// The outputs of binary targets [1] are shown as two classes. Tokens are masked ones unless
/// `causal`.
Prediction default_prediction(MetricTask::Target target, bool per_element, bool causal);

/// Targets per element have no curves over thresholds, which keep all scores.
Report default_report(MetricTask::Target target, bool per_element);

}  // namespace gallop::train
