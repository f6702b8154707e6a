#pragma once

#include <cstddef>
#include <vector>

#include "gallop/train/step.h"

namespace gallop::train {

/// Everything that changes from step to step, as tensors: the inputs of a training step as a
/// function of tensors.
struct StepInputs {
  NamedTensors batch;        ///< As TrainStep::start() is given it.
  at::Tensor lr;             ///< fp32 scalar.
  at::Tensor loss_weight;    ///< fp32 scalar that every sum of losses is multiplied by.
  at::Tensor seed_and_step;  ///< int64 [2], from which dropout and stochastic rounding draw.
  std::vector<at::Tensor> scheduled{};  ///< In the order of StepConfig::scheduled.
  /// Where processes share the step, else undefined: what dropout draws from in this process, int64
  /// [batch slices or 1, 2], and what this process adds to SharedSum, from kTargets on.
  at::Tensor own_seed_and_step{}, shared{};

  int64_t rows() const { return batch[0].tensor.size(0); }

  /// All tensors in a fixed order, and the inverse: `like` has the same names and numbers of them.
  std::vector<at::Tensor> pack() const;
  static StepInputs unpack(const std::vector<at::Tensor>& tensors, const StepInputs& like);
};

/// What a training step as a function of tensors returns. Those that it does not compute are
/// undefined.
struct StepOutputs {
  at::Tensor loss_sum;       ///< fp64 scalar.
  at::Tensor correct;        ///< int64 scalar: correct first predictions.
  at::Tensor gradient_norm;  ///< Scalar.
  at::Tensor spike;          ///< fp64 scalar, not 0 where the update was skipped.
  at::Tensor shared_sums;    ///< fp64, as SharedSum says.
  at::Tensor target_count;   ///< fp64 scalar, where counts are computed on the device.

  std::vector<at::Tensor> pack() const;
  static StepOutputs unpack(const std::vector<at::Tensor>& tensors);
};

// Results in one tensor, for one copy to the host. Behind these: the count of targets where it is
// computed on the device; right guesses where they are counted, and where the step is shared all
// SharedSums instead of them.
enum Number : size_t { kLossNumber, kNormNumber, kSpikeNumber, kFurtherNumbers };
// Sums over processes: right guesses, targets that were not broken and all targets, how many wish
// what, how many could not do their part, and the loss of each shard.
enum SharedSum : size_t {
  kSharedTop1,
  kTargets,
  kAllTargets,
  kFirstRequest,
  kMissing = kFirstRequest + kStepRequests,
  kFirstLoss
};

// Whether counts follow from sizes, so that a loss divides by a number that the host knows.
bool counts_by_size(const StepConfig& config, const std::vector<LossTerm>& terms);
// Throws UsageError where a step cannot be done with the config's loss.
void check_loss(const StepConfig& config);

}  // namespace gallop::train
