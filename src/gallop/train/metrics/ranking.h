#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Counts, per class and distinct score, the targets that are and are not of the class, from which
/// all curves over thresholds follow. Scores are fp32: softmax probabilities of classes (for two
/// classes, of the second only), logits of labels and of binary targets. Takes 12 bytes per
/// distinct score and class, at most 12 N C, in each process; at the end, those of all processes.
class ScoreCounts final : public MetricState {
 public:
  explicit ScoreCounts(MetricTask task);

  void add(const Predictions& batch) override;
  void merge(const MetricState& other) override;
  std::string to_bytes() const override;
  void from_bytes(const std::string& bytes) override;

  /// The targets with one score; `key` has the order of the scores.
  struct Entry {
    uint32_t key = 0, negatives = 0, positives = 0;
    float score() const;
  };
  /// Per class, in increasing order of scores.
  std::vector<std::vector<Entry>> entries() const;
  /// Whether no score is NaN; otherwise nothing is defined.
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

/// These throw UsageError for tokens, which have too many scores, and for numbers.
std::unique_ptr<Metric> make_roc_auc(const OneVsRestConfig& config, const MetricTask& task);
std::unique_ptr<Metric> make_average_precision(const OneVsRestConfig& config,
                                               const MetricTask& task);

}  // namespace gallop::train
