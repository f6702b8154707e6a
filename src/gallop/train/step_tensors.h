#pragma once

#include <cstddef>
#include <vector>

#include "gallop/train/step.h"

namespace gallop::train {

/// All tensors that change from step to step: the inputs of a training step as a function of
/// tensors.
struct StepInputs {
  NamedTensors batch;        ///< As passed to TrainStep::start().
  at::Tensor lr;             ///< fp32 scalar.
  at::Tensor loss_weight;    ///< fp32 scalar by which every sum of losses is multiplied.
  at::Tensor seed_and_step;  ///< int64 [2], from which dropout and stochastic rounding draw.
  std::vector<at::Tensor> scheduled{};  ///< In the order of StepConfig::scheduled.
  /// If processes share the step, else undefined: seed and step of dropout in this process, int64
  /// [batch slices or 1, 2], and this process's summands of SharedSum, from kTargets on.
  at::Tensor own_seed_and_step{}, shared{};

  int64_t rows() const { return batch[0].tensor.size(0); }

  /// All tensors in a fixed order. unpack() is the inverse; `like` has the same names and numbers.
  std::vector<at::Tensor> pack() const;
  static StepInputs unpack(const std::vector<at::Tensor>& tensors, const StepInputs& like);
};

/// The outputs of a training step as a function of tensors. Those that it does not compute are
/// undefined.
struct StepOutputs {
  at::Tensor loss_sum;       ///< fp64 scalar.
  at::Tensor correct;        ///< int64 scalar: correct top-1 predictions.
  at::Tensor gradient_norm;  ///< Scalar.
  at::Tensor spike;          ///< fp64 scalar; not 0 if the update was skipped.
  at::Tensor shared_sums;    ///< fp64, indexed by SharedSum.
  at::Tensor target_count;   ///< fp64 scalar, if counts are computed on the device.

  std::vector<at::Tensor> pack() const;
  static StepOutputs unpack(const std::vector<at::Tensor>& tensors);
};

// Indices of the results in one fp64 tensor, which takes one copy to the host. They are followed by
// the count of targets, if it is computed on the device, and by the number of correct predictions,
// if they are counted, or all SharedSums if processes share the step.
enum Number : size_t { kLossNumber, kNormNumber, kSpikeNumber, kFurtherNumbers };
// Sums over processes: correct predictions, targets of samples that are not broken, all targets,
// processes that make each request, processes that failed in the step, and the loss of each slice.
enum SharedSum : size_t {
  kSharedTop1,
  kTargets,
  kAllTargets,
  kFirstRequest,
  kMissing = kFirstRequest + kStepRequests,
  kFirstLoss
};

// Whether counts follow from sizes, so that a loss is divided by a number that the host knows.
bool counts_by_size(const StepConfig& config, const std::vector<LossTerm>& terms);
// Throws UsageError if a step cannot be done with the config's loss.
void check_loss(const StepConfig& config);

}  // namespace gallop::train
