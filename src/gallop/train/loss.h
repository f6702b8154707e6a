#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/model/output.h"

namespace gallop::train {

/// The sum of the cross-entropies of all targets that count (data::kIgnoredTarget does not), a
/// scalar. logits [N, C] with target [N], or [N, T, C] with [N, T]; or class probabilities of the
/// same sizes as the logits. `label_smoothing` as in PyTorch's CrossEntropyLoss (Szegedy et al.,
/// 2016).
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                             double label_smoothing);

/// The cross-entropy of a model's output. `correct` is the number of correct top-1 predictions
/// (int64, without dimensions), computed only if requested.
struct Losses {
  at::Tensor sum;
  at::Tensor correct;
  at::Tensor step_statistics{};  ///< model::Output::step_statistics.
};
Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         double label_smoothing, bool count_correct);

/// As above, with a label smoothing that may change from step to step, a 0-d tensor. Stores all
/// logits and a probability per class.
Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         const at::Tensor& label_smoothing, bool count_correct);

/// The number of targets that count.
int64_t count_targets(const at::Tensor& target);

/// Sums over predictions. They can be added exactly for any grouping into batches.
struct Tally {
  double loss_sum = 0;
  int64_t count = 0;
  int64_t top1 = 0;  ///< Correct top-1 predictions.
  int64_t top5 = 0;  ///< Targets among the top-5 predictions; equals `count` below six classes.

  double loss() const { return count > 0 ? loss_sum / static_cast<double>(count) : 0; }
  double accuracy() const { return ratio(top1); }
  double top5_accuracy() const { return ratio(top5); }
  void add(const Tally& other);

 private:
  double ratio(int64_t correct) const {
    return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : 0;
  }
};

/// Counts correct predictions of logits (not the loss).
Tally count_correct(const at::Tensor& logits, const at::Tensor& target, bool with_top5);
/// Whether each target [N] is among the k classes with the highest scores [N, C]; false for ignored
/// targets and NaN. Of classes with the same score, the one with the higher index comes first, as
/// in scikit-learn's top_k_accuracy_score.
at::Tensor hits_among(const at::Tensor& scores, const at::Tensor& target, int64_t k);

}  // namespace gallop::train
