#include "gallop/train/reports/report_metrics.h"

#include <limits>

#include "gallop/train/metrics/calibration.h"
#include "gallop/train/metrics/confusion.h"
#include "gallop/train/metrics/pair_figures.h"
#include "gallop/train/metrics/ranking.h"
#include "gallop/train/metrics/residuals.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;
using Made = std::unique_ptr<Metric>;

Made roc(const MetricTask& task) { return make_roc_auc({}, task); }
Made precision_recall(const MetricTask& task) { return make_average_precision({}, task); }
Made reliability(const MetricTask& task) { return make_calibration_error({}, task); }

constexpr int64_t kMostCells = 1000;  // Per dimension of a confusion matrix: 8 MB.
constexpr int64_t kMostCurves = 20;   // Each keeps all distinct scores.
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

struct ReportMetric {
  Target target = Target::kClasses;
  Made (*make)(const MetricTask& task) = nullptr;
  int64_t most_classes = kAny;
  bool keeps_scores = false;  ///< Of every target; too much if every pixel has one.
};

constexpr ReportMetric kReportMetrics[] = {
    {Target::kClasses, make_confusion_matrix, kMostCells},
    {Target::kClasses, roc, kMostCurves, /*keeps_scores=*/true},
    {Target::kClasses, precision_recall, kMostCurves, /*keeps_scores=*/true},
    {Target::kClasses, reliability, kAny},
    {Target::kTokens, reliability, kAny},
    {Target::kBinary, make_confusion_matrix, kAny},
    {Target::kBinary, roc, kAny},
    {Target::kBinary, precision_recall, kAny},
    {Target::kBinary, reliability, kAny},
    {Target::kLabels, make_confusion_matrix, kAny},
    {Target::kLabels, roc, kMostCurves},
    {Target::kLabels, precision_recall, kMostCurves},
    {Target::kLabels, reliability, kAny},
    {Target::kNumbers, make_residuals, kAny},
    {Target::kPairs, make_pair_figures, kAny},
};

}  // namespace

Metrics report_metrics_for(const MetricTask& task) {
  Metrics metrics;
  for (const ReportMetric& one : kReportMetrics) {
    if (task.per_element && one.keeps_scores) continue;
    if (one.target == task.target && task.classes <= one.most_classes) {
      metrics.push_back(one.make(task));
    }
  }
  return metrics;
}

}  // namespace gallop::train
