#pragma once

#include "gallop/data/signature.h"
#include "gallop/model/model.h"
#include "gallop/train/metrics/metric_set.h"
#include "gallop/train/tasks/task.h"

namespace gallop::app {

/// What data of this signature look like to a model, and to metrics.
model::Task model_task(const data::Signature& signature, const train::TaskTable& tasks);
train::MetricTask metric_task(const data::Signature& signature, const train::TaskTable& tasks);

/// What a recipe chooses, where it leaves that to the task.
train::MetricChoice metrics_for(const train::MetricChoice& choice, const train::Task& task);

}  // namespace gallop::app
