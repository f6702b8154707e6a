#include "gallop/train/reports/report.h"

#include "gallop/train/metrics/calibration.h"
#include "gallop/train/metrics/confusion.h"
#include "gallop/train/metrics/edit_distance.h"
#include "gallop/train/metrics/pair_figures.h"
#include "gallop/train/metrics/ranking.h"
#include "gallop/train/metrics/residuals.h"

namespace gallop::train {

namespace {

using Made = std::unique_ptr<Metric>;

Made roc(const MetricTask& task) { return make_roc_auc({}, task); }
Made precision_recall(const MetricTask& task) { return make_average_precision({}, task); }
Made reliability(const MetricTask& task) { return make_calibration_error({}, task); }

constexpr int64_t kMostCells = 1000;  // Per dimension of a confusion matrix: 8 MB.
constexpr int64_t kMostCurves = 20;   // Each keeps all distinct scores.

}  // namespace

constinit const ReportMetric kConfusionMatrix{make_confusion_matrix, kMostCells};
constinit const ReportMetric kAlignedConfusion{make_aligned_confusion, kMostCells};
constinit const ReportMetric kConfusionByLabel{make_confusion_matrix};
constinit const ReportMetric kRocCurves{roc, kMostCurves};
constinit const ReportMetric kPrecisionRecallCurves{precision_recall, kMostCurves};
constinit const ReportMetric kReliabilityDiagram{reliability};
constinit const ReportMetric kResiduals{make_residuals};
constinit const ReportMetric kPairRetrieval{make_pair_figures};

Metrics report_metrics(const Report& report, const MetricTask& task) {
  Metrics metrics;
  for (const ReportMetric& one : report.metrics) {
    if (task.classes <= one.max_classes) metrics.push_back(one.make(task));
  }
  return metrics;
}

}  // namespace gallop::train
