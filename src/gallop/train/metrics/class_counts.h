#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// How often each class is true, predicted, and both, of which follow precision, recall and their
/// like. Of labels and of yes or no, which are predicted where their probability is above one half.
/// Counts stay on the device of the predictions. 24 bytes for each class.
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
    int64_t right = 0;  ///< Samples all of whose labels are right.
  };
  Numbers numbers() const;

 private:
  MetricTask task_;
  at::Tensor counts_;  // int64 [3, C + 1]: the last column has what does not count.
  at::Tensor totals_;  // int64 [2]: samples and right ones.
};

struct AverageConfig {
  std::string average = "macro";
};
void visit(config::Visitor& visitor, AverageConfig& config);
struct NoMetricOptions {};
void visit(config::Visitor& visitor, NoMetricOptions& config);

/// Throw UsageError where targets are numbers.
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

/// The name of a class in that of a value: "f1/cat", or "f1/class-3" where it has none.
std::string value_of_class(const std::string& metric, const MetricTask& task, size_t index);

/// "f1" with the average that is the default, else "f1-micro".
std::string with_average(const std::string& metric, const std::string& average);

}  // namespace gallop::train
