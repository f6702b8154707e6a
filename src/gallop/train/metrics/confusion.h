#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// How often each class is predicted as each class. Counts stay on the device of the predictions: 8
/// C^2 bytes.
class ConfusionCounts final : public MetricState {
 public:
  explicit ConfusionCounts(MetricTask task) : task_(std::move(task)) {}

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  ConfusionMatrix matrix() const;

 private:
  std::vector<int64_t> counts() const;

  MetricTask task_;
  at::Tensor counts_;  // int64 [C * C + 1]; the last one has what does not count.
};

/// The confusion matrix, a figure without a value. Throws UsageError if targets are labels or
/// numbers.
std::unique_ptr<Metric> make_confusion_matrix(const MetricTask& task);

}  // namespace gallop::train
