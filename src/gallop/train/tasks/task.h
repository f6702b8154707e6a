#pragma once

#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// What a data set is for: everything that follows from the kind of its targets. A data module
/// names its task (data::Signature::task); a plug-in may add one.
struct Task {
  std::string name;     ///< "multi-label"
  std::string summary;  ///< One line.
  MetricTask::Target target = MetricTask::Target::kClasses;
  std::string loss;                    ///< What `train.loss: auto` is.
  std::string metric = "auto";         ///< What `train.metric: auto` is.
  std::vector<std::string> metrics{};  ///< What evaluations report besides, of themselves.
  bool per_element = false;  ///< An output for each pixel or position, not one for a sample.
  bool causal = false;       ///< An output may depend on earlier positions alone.
};

/// Tasks by name.
class TaskTable {
 public:
  /// Throws UsageError where there is one of the name.
  TaskTable& add(Task task);
  /// Throws UsageError with the names that there are.
  const Task& find(const std::string& name) const;
  const std::vector<Task>& all() const { return tasks_; }

 private:
  std::vector<Task> tasks_;
};

/// The tasks that come with Gallop.
TaskTable built_in_tasks();

}  // namespace gallop::train
