#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gallop/train/metrics/metric_set.h"

namespace gallop::train {

/// A metric whose figures an evaluation report shows.
struct ReportMetric {
  /// Throws UsageError if the metric is not defined for the task.
  std::unique_ptr<Metric> (*make)(const MetricTask& task) = nullptr;
  /// With more classes it is left out, as it would need too much memory.
  int64_t max_classes = std::numeric_limits<int64_t>::max();
};

extern const ReportMetric kConfusionMatrix;        ///< Of classes.
extern const ReportMetric kAlignedConfusion;       ///< Of sequences of classes.
extern const ReportMetric kConfusionByLabel;       ///< One for each label.
extern const ReportMetric kRocCurves;              ///< Of classes or labels, one per sample.
extern const ReportMetric kPrecisionRecallCurves;  ///< Of classes or labels, one per sample.
extern const ReportMetric kReliabilityDiagram;     ///< Of classes, tokens or labels.
extern const ReportMetric kResiduals;              ///< Of numbers.
extern const ReportMetric kPairRetrieval;          ///< Of embeddings of pairs.

/// What an evaluation report shows in addition to the values and figures of all metrics.
struct Report {
  /// Images of a data set of images.
  enum class Images {
    kNone,
    kMistakes,  ///< The most confident misclassifications.
    kMasks,     ///< The first images and those with the lowest IoU, with their masks.
  };
  std::vector<ReportMetric> metrics{};
  Images images = Images::kNone;
};

/// Builds the metrics of a report, without those that are not for so many classes.
Metrics report_metrics(const Report& report, const MetricTask& task);

}  // namespace gallop::train
