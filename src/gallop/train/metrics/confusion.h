#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// How often each class is predicted as each class, or for labels how often each is present and
/// predicted. Counts stay on the device of the predictions: 8 C^2 bytes, or 32 C of labels.
class ConfusionCounts final : public MetricState {
 public:
  explicit ConfusionCounts(MetricTask task) : task_(std::move(task)) {}

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  /// Requires targets that are no labels.
  ConfusionMatrix matrix() const;
  /// Requires targets that are labels.
  LabelConfusions of_labels() const;

 private:
  int64_t cells() const;
  std::vector<int64_t> counts() const;

  MetricTask task_;
  at::Tensor counts_;  // int64 [cells + 1]; the last one has what does not count.
};

/// The confusion matrix, a figure without a value; of labels, one of each. Throws UsageError if
/// targets are numbers.
std::unique_ptr<Metric> make_confusion_matrix(const MetricTask& task);

}  // namespace gallop::train
