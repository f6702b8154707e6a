#pragma once

#include <vector>

#include "gallop/train/metrics/figure_data.h"
#include "gallop/train/metrics/ranking.h"

namespace gallop::train {

/// Adds the points of a ROC curve: one per distinct score, and one above all scores, at (0, 0).
/// None if there are no positives or no negatives.
void add_roc_points(const std::vector<ScoreCounts::Entry>& entries, ThresholdCurve& curve);

/// Adds the points of a precision-recall curve, which begins with recall 0 and precision 1, as in
/// scikit-learn. None if there are no positives.
void add_precision_recall_points(const std::vector<ScoreCounts::Entry>& entries,
                                 ThresholdCurve& curve);

}  // namespace gallop::train
