#pragma once

#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The task of a data set: everything that follows from the kind of its targets. A data module
/// names its task (data::Signature::task); a plug-in may add one.
struct Task {
  std::string name;     ///< "multi-label"
  std::string summary;  ///< One line.
  MetricTask::Target target = MetricTask::Target::kClasses;
  std::string loss;                    ///< The loss of `train.loss: auto`.
  std::string metric = "auto";         ///< The metric of `train.metric: auto`.
  std::vector<std::string> metrics{};  ///< Additional metrics of evaluations by default.
  bool per_element = false;            ///< Outputs are per pixel or position, not per sample.
  bool causal = false;                 ///< An output may depend only on earlier positions.
};

/// Tasks by name.
class TaskTable {
 public:
  /// Throws UsageError if a task with this name exists.
  TaskTable& add(Task task);
  /// Throws UsageError, listing the known names, if there is none.
  const Task& find(const std::string& name) const;
  const std::vector<Task>& all() const { return tasks_; }

 private:
  std::vector<Task> tasks_;
};

/// The tasks that come with Gallop.
TaskTable built_in_tasks();

}  // namespace gallop::train
