#pragma once

#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"
#include "gallop/train/reports/report.h"
#include "gallop/train/tasks/prediction.h"
#include "gallop/train/tasks/task_defaults.h"

namespace gallop::train {

/// The task of a data set: everything that follows from the kind of its targets. A data module
/// names its task (data::Signature::task); a plug-in may add one, of which only the name and the
/// target are necessary.
struct Task {
  using Target = MetricTask::Target;

  std::string name;     ///< "multi-label"
  std::string summary;  ///< One line.
  Target target = Target::kClasses;
  std::string loss = default_loss(target);      ///< The loss of `train.loss: auto`.
  std::string metric = default_metric(target);  ///< The metric of `train.metric: auto`.
  std::vector<std::string> metrics{};           ///< Additional metrics of evaluations by default.
  bool per_element = false;  ///< Outputs are per pixel or position, not per sample.
  bool causal = false;       ///< An output may depend only on earlier positions.
  Prediction prediction = default_prediction(target, per_element, causal);
  Report report = default_report(target, per_element);

  /// Whether each target is one of several classes, tokens included.
  bool has_classes() const { return MetricTask::are_classes(target); }
  /// Whether each target is one of several classes that are not tokens.
  bool has_class_labels() const { return target == Target::kClasses; }
  /// Whether each sample has one such class.
  bool has_class_per_sample() const { return has_class_labels() && !per_element; }
  bool has_tokens() const { return target == Target::kTokens; }
  bool has_labels() const { return target == Target::kLabels; }
  /// Whether each target is 0 or 1, and each output its logit.
  bool is_binary() const { return has_labels() || target == Target::kBinary; }
  bool has_number_targets() const { return target == Target::kNumbers; }
  /// Whether a target is a sequence of classes that is aligned with outputs of another length.
  bool has_sequences() const { return target == Target::kSequences; }
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
