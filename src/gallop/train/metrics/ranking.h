#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Of each class how many targets are and are not of it at each distinct score: all that curves
/// over thresholds need. Scores are fp32: softmax probabilities of classes (of two classes those of
/// the second alone), logits of labels and of yes or no. 12 bytes for each distinct score of each
/// class, so 12 N C bytes at most, in each process that evaluates, and those of all at the end.
class ScoreCounts final : public MetricState {
 public:
  explicit ScoreCounts(MetricTask task);

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  /// Targets at a score, which `key` orders like the scores themselves.
  struct Entry {
    uint32_t key = 0, negatives = 0, positives = 0;
    float score() const;
  };
  /// By class, each in rising order of scores.
  std::vector<std::vector<Entry>> entries() const;
  /// Whether every score was a number; where one was not, nothing is defined.
  bool are_numbers() const { return nans_ == 0; }

 private:
  struct Column {
    std::vector<Entry> sorted, more;
  };
  void note(size_t column, float score, bool is_positive);

  MetricTask task_;
  std::vector<Column> columns_;
  int64_t nans_ = 0;
};

struct OneVsRestConfig {
  std::string average = "macro";
};
void visit(config::Visitor& visitor, OneVsRestConfig& config);

/// Throw UsageError for tokens, whose scores would be too many, and for numbers.
std::unique_ptr<Metric> make_roc_auc(const OneVsRestConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_average_precision(const OneVsRestConfig& config,
                                               const MetricTask& task);

}  // namespace gallop::train
