#include "gallop/train/metrics/calibration.h"
#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/edit_distance.h"
#include "gallop/train/metrics/loss_metrics.h"
#include "gallop/train/metrics/metric.h"
#include "gallop/train/metrics/ranking.h"
#include "gallop/train/metrics/regression.h"
#include "gallop/train/metrics/retrieval.h"

namespace gallop::train {

MetricRegistry built_in_metrics() {
  MetricRegistry registry("metric");
  registry
      .add("auto", "the metric of the task: accuracy of classes, loss of tokens", make_auto_metric)
      .add("loss", "mean loss of a target", make_loss)
      .add("accuracy", "fraction of targets that are predicted correctly", make_accuracy)
      .add("top5", "top-k with k=5", make_top5)
      .add("top-k", "fraction of targets among the k most likely classes", make_top_k)
      .add("balanced-accuracy", "mean recall over classes", make_balanced_accuracy)
      .add("precision", "true positives as a fraction of predicted positives", make_precision)
      .add("recall", "true positives as a fraction of actual positives", make_recall)
      .add("f1", "harmonic mean of precision and recall", make_f1)
      .add("mcc", "Matthews correlation coefficient, from -1 to 1", make_mcc)
      .add("cohen-kappa", "agreement with the targets beyond chance, at most 1", make_cohen_kappa)
      .add("roc-auc", "area under the ROC curve, one class against the others", make_roc_auc)
      .add("average-precision", "area under the precision-recall curve, by steps",
           make_average_precision)
      .add("expected-calibration-error", "mean difference of confidence and accuracy",
           make_calibration_error)
      .add("label-error-rate",
           "edit distance of predicted sequences, divided by the length of the targets",
           make_label_error_rate)
      .add("exact-match", "fraction of sequences that are predicted without an error",
           make_exact_match)
      .add("mse", "mean squared error", make_mse)
      .add("rmse", "square root of the mean squared error", make_rmse)
      .add("mae", "mean absolute error", make_mae)
      .add("r2", "coefficient of determination, at most 1", make_r2)
      .add("mean-iou", "intersection over union (Jaccard index)", make_mean_iou)
      .add("dice", "Dice coefficient, which is f1", make_dice)
      .add("perplexity", "exponential of the loss", make_perplexity)
      .add("bits-per-character", "loss in bits, of tokens that are characters",
           make_bits_per_character)
      .add("recall-at-k", "fraction of relevant items among the first k of a ranked list",
           make_recall_at_k)
      .add("mean-average-precision", "mAP of ranked lists, not of detected boxes",
           make_mean_average_precision);
  return registry;
}

}  // namespace gallop::train
