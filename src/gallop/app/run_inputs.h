#pragma once

#include "gallop/data/signature.h"
#include "gallop/model/model.h"
#include "gallop/train/metrics/metric_set.h"
#include "gallop/train/tasks/task.h"

namespace gallop::app {

/// The model task of data with this signature, with its metrics.
model::Task model_task(const data::Signature& signature, const train::TaskTable& tasks);
train::MetricTask metric_task(const data::Signature& signature, const train::TaskTable& tasks);

/// The recipe's metrics, with the task's as defaults.
train::MetricChoice metrics_for(const train::MetricChoice& choice, const train::Task& task);

}  // namespace gallop::app
