#include "gallop/train/metrics/metric.h"

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

const char* targets_of(const MetricTask& task) {
  switch (task.target) {
    case MetricTask::Target::kClasses: return "one class each";
    case MetricTask::Target::kTokens: return "tokens of text";
    case MetricTask::Target::kBinary: return "yes or no";
    case MetricTask::Target::kLabels: return "any number of labels each";
    case MetricTask::Target::kNumbers: return "numbers";
    case MetricTask::Target::kPairs: return "pairs";
    case MetricTask::Target::kSequences: return "sequences of classes";
  }
  return "";
}

}  // namespace

std::vector<FigureData> Metric::figures(const MetricState& /*state*/) const { return {}; }

std::string class_name(const MetricTask& task, size_t index) {
  return index < task.class_names.size() ? task.class_names[index] : fmt::format("class-{}", index);
}

std::vector<std::string> class_names(const MetricTask& task) {
  std::vector<std::string> names;
  for (size_t i = 0; i < static_cast<size_t>(task.classes); ++i) {
    names.push_back(class_name(task, i));
  }
  return names;
}

void refuse_task(const std::string& metric, const std::string& needs, const MetricTask& task) {
  throw UsageError(
      fmt::format("metric '{}' needs {}, but the targets of these data are {}; leave "
                  "it out of train.metric and train.metrics",
                  metric, needs, targets_of(task)));
}

}  // namespace gallop::train
