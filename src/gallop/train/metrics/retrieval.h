#pragma once

#include <memory>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

struct RecallAtKConfig {
  int64_t k = 10;
};
void visit(config::Visitor& visitor, RecallAtKConfig& config);

/// Of ranked lists: each row is a query, its outputs score the items, and its target is the one
/// relevant item, or says of each item whether it is. The mean over the queries that have relevant
/// items of the share of these among the first k. Of items with one score, those that stand behind
/// others come first, as in scikit-learn's top_k_accuracy_score. Of pairs, each first one is a
/// query, scored by its cosine similarity with the second ones of the same batch.
std::unique_ptr<Metric> make_recall_at_k(const RecallAtKConfig& config, const MetricTask& task);

/// The mean over queries of their average precision: over the relevant items of a query, the share
/// of relevant ones among all that score as high; not that of detected boxes. Equals scikit-learn's
/// label_ranking_average_precision_score, ties and queries without relevant items (1) included. Of
/// pairs, see make_recall_at_k(), it is the mean reciprocal rank.
std::unique_ptr<Metric> make_mean_average_precision(const NoMetricOptions& config,
                                                    const MetricTask& task);

}  // namespace gallop::train
