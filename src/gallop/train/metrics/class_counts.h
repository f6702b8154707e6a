#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// How often each class is true, predicted, and both; precision, recall and similar metrics follow
/// from that. Labels and binary targets are predicted if their probability is above 0.5. Counts
/// stay on the device of the predictions. 24 bytes per class.
class ClassCounts final : public MetricState {
 public:
  explicit ClassCounts(MetricTask task) : task_(std::move(task)) {}

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  struct Numbers {
    std::vector<int64_t> truths, predictions, hits;  ///< [C]
    int64_t samples = 0;
    int64_t right = 0;  ///< Samples all of whose labels are correct.
  };
  Numbers numbers() const;

 private:
  MetricTask task_;
  at::Tensor counts_;  // int64 [3, C + 1]; the last column has what does not count.
  at::Tensor totals_;  // int64 [2]: all and correct samples.
};

struct AverageConfig {
  std::string average = "macro";
};
void visit(config::Visitor& visitor, AverageConfig& config);
struct NoMetricOptions {};
void visit(config::Visitor& visitor, NoMetricOptions& config);

/// These throw UsageError if targets are numbers.
std::unique_ptr<Metric> make_accuracy(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_balanced_accuracy(const NoMetricOptions& config,
                                               const MetricTask& task);
std::unique_ptr<Metric> make_precision(const AverageConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_recall(const AverageConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_f1(const AverageConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_mean_iou(const AverageConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_dice(const AverageConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_mcc(const NoMetricOptions& config, const MetricTask& task);
std::unique_ptr<Metric> make_cohen_kappa(const NoMetricOptions& config, const MetricTask& task);

/// The name of a class's value: "f1/cat", or "f1/class-3" if the class has no name.
std::string value_of_class(const std::string& metric, const MetricTask& task, size_t index);

/// "f1" with the default average, otherwise for example "f1-micro".
std::string with_average(const std::string& metric, const std::string& average);

}  // namespace gallop::train
