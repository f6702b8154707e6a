#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::train {

/// Sum of the cross-entropies over all targets that count (data::kIgnoredTarget does not), a
/// scalar. logits [N, C] with target [N], or [N, T, C] with [N, T]. `label_smoothing` as in
/// PyTorch's CrossEntropyLoss (Szegedy et al., 2016).
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                             double label_smoothing);

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
  double ratio(int64_t right) const {
    return count > 0 ? static_cast<double>(right) / static_cast<double>(count) : 0;
  }
};

/// Right first guesses of logits against targets: int64, no dimensions.
at::Tensor count_top1(const at::Tensor& logits, const at::Tensor& target);

/// Counts right guesses (not the loss) of logits against targets.
Tally count_right(const at::Tensor& logits, const at::Tensor& target, bool with_top5);

}  // namespace gallop::train
