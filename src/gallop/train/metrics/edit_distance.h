#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// One step of an alignment of a predicted sequence with its target.
struct Edit {
  int64_t target = 0;     ///< data::kIgnoredTarget: an insertion, of a class that is no target.
  int64_t predicted = 0;  ///< data::kIgnoredTarget: a deletion, of a target that is not predicted.

  bool is_error() const { return target != predicted; }
};

/// An alignment with the fewest insertions, deletions and substitutions, in order (Levenshtein,
/// "Binary codes capable of correcting deletions, insertions, and reversals", 1966). Takes time and
/// memory in proportion to the product of the lengths.
std::vector<Edit> align(const std::vector<int64_t>& target, const std::vector<int64_t>& predicted);

/// These throw UsageError unless targets are sequences of classes.
std::unique_ptr<Metric> make_label_error_rate(const NoMetricOptions& config,
                                              const MetricTask& task);
std::unique_ptr<Metric> make_exact_match(const NoMetricOptions& config, const MetricTask& task);
/// A metric that has only a figure: the confusion matrix of the aligned classes, in which the blank
/// class stands for insertions (its row) and deletions (its column).
std::unique_ptr<Metric> make_aligned_confusion(const MetricTask& task);

}  // namespace gallop::train
