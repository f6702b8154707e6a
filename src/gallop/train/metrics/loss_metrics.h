#pragma once

#include <memory>

#include "gallop/train/loss.h"
#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The key of states that are a Tally, which evaluate() has anyway.
inline constexpr const char* kTallyKey = "tally";

/// A Tally as a state. Its loss is a sum of each batch's in the order of batches: the same for any
/// number of processes, and to rounding for any size of batches; its counts are exact.
class TallyState final : public MetricState {
 public:
  TallyState() = default;
  explicit TallyState(const Tally& tally) : tally_(tally) {}

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;
  const Tally& tally() const { return tally_; }

 private:
  Tally tally_;
};

/// Cross-entropy and correct predictions of a batch of class labels, read from its device.
Tally tally_of(const at::Tensor& outputs, const at::Tensor& labels);
/// The same without the loss.
Tally count_correct_of(const at::Tensor& outputs, const at::Tensor& labels);

struct TopKConfig {
  int64_t k = 5;
};
void visit(config::Visitor& visitor, TopKConfig& config);

/// Throw UsageError where targets are not of one class each.
std::unique_ptr<Metric> make_loss(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top1(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top5(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top_k(const TopKConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_perplexity(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_bits_per_character(const NoMetricOptions& config,
                                                const MetricTask& task);

/// What `auto` is: the loss of text and numbers, else the accuracy.
std::unique_ptr<Metric> make_auto_metric(const NoMetricOptions& config, const MetricTask& task);

}  // namespace gallop::train
