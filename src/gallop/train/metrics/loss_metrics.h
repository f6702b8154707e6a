#pragma once

#include <memory>

#include "gallop/train/loss.h"
#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The state key of metrics that use a Tally, which evaluate() computes in any case.
inline constexpr const char* kTallyKey = "tally";

/// A Tally as a state. Its loss adds those of the batches in order: the same for any number of
/// processes, and up to rounding for any batch size. Its counts are exact.
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

/// Cross-entropy and correct predictions of a batch of class labels, copied to the host.
Tally tally_of(const at::Tensor& outputs, const at::Tensor& labels);
/// As tally_of(), without the loss.
Tally count_correct_of(const at::Tensor& outputs, const at::Tensor& labels);

struct TopKConfig {
  int64_t k = 5;
};
void visit(config::Visitor& visitor, TopKConfig& config);

/// These throw UsageError if targets are not of one class each.
std::unique_ptr<Metric> make_loss(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top1(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top5(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_top_k(const TopKConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_perplexity(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_bits_per_character(const NoMetricOptions& config,
                                                const MetricTask& task);

/// The metric of `auto`: the loss for text and numbers, otherwise the accuracy.
std::unique_ptr<Metric> make_auto_metric(const NoMetricOptions& config, const MetricTask& task);

}  // namespace gallop::train
