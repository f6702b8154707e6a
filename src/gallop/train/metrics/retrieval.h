#pragma once

#include <memory>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

struct RecallAtKConfig {
  int64_t k = 10;
};
void visit(config::Visitor& visitor, RecallAtKConfig& config);

/// Recall at k of ranked lists: each row is a query, its outputs score the items, and its target is
/// the one relevant item, or the relevance of each item, 0 or 1. The mean over queries with
/// relevant items of the fraction of these among the first k. Of items with the same score, that
/// with the higher index comes first, as in scikit-learn's top_k_accuracy_score. For pairs, each
/// first embedding is a query among the second ones of the whole split, by cosine similarity; its
/// own comes after all others with the same score, so that equal embeddings find nothing.
std::unique_ptr<Metric> make_recall_at_k(const RecallAtKConfig& config, const MetricTask& task);

/// The mean over queries of their average precision: over the relevant items of a query, the mean
/// fraction of relevant items among all with at least the same score. Not that of detected boxes.
/// Equals scikit-learn's label_ranking_average_precision_score, including ties and queries without
/// relevant items (1). For pairs, see make_recall_at_k(), it is the mean reciprocal rank.
std::unique_ptr<Metric> make_mean_average_precision(const NoMetricOptions& config,
                                                    const MetricTask& task);

}  // namespace gallop::train
