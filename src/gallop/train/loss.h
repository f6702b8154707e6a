#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/model/output.h"

namespace gallop::train {

/// Sum of the cross-entropies over all targets that count (data::kIgnoredTarget does not), a
/// scalar. logits [N, C] with target [N], or [N, T, C] with [N, T]; or shares of each class, of
/// the logits' sizes. `label_smoothing` as in PyTorch's CrossEntropyLoss (Szegedy et al.,
/// 2016).
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                             double label_smoothing);

/// The same of a model's output. `correct`, the number of right first guesses (int64, without
/// dimensions), only where it is asked for.
struct Losses {
  at::Tensor sum;
  at::Tensor correct;
};
Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         double label_smoothing, bool count_correct);

/// The same with a smoothing that changes from step to step: a number without dimensions. All
/// logits and a share for each class are stored.
Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         const at::Tensor& label_smoothing, bool count_correct);

/// Number of targets that count.
int64_t count_targets(const at::Tensor& target);

/// Sums over predictions; adding two of them is exact for any grouping into batches.
struct Tally {
  double loss_sum = 0;
  int64_t count = 0;
  int64_t top1 = 0;  ///< Right first guesses.
  int64_t top5 = 0;  ///< Targets among the five first guesses; equals `count` below six classes.

  double loss() const { return count > 0 ? loss_sum / static_cast<double>(count) : 0; }
  double accuracy() const { return ratio(top1); }
  double top5_accuracy() const { return ratio(top5); }
  void add(const Tally& other);

 private:
  double ratio(int64_t correct) const {
    return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : 0;
  }
};

/// Counts right guesses (not the loss) of logits against targets.
Tally count_correct(const at::Tensor& logits, const at::Tensor& target, bool with_top5);

}  // namespace gallop::train
