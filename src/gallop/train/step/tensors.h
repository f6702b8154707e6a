#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// All tensors that change from step to step: the inputs of a training step as a function of
/// tensors.
struct StepInputs {
  NamedTensors batch{};      ///< As passed to TrainStep::start().
  at::Tensor lr;             ///< fp32 scalar.
  at::Tensor loss_weight;    ///< fp32 scalar by which every sum of losses is multiplied.
  at::Tensor seed_and_step;  ///< int64 [2], from which dropout and stochastic rounding draw.
  std::vector<at::Tensor> scheduled{};  ///< In the order of StepConfig::scheduled.
  /// If processes share the step, else undefined: seed and step of dropout in this process, int64
  /// [batch slices or 1, 2], and this process's summands of SharedSum, from kTargets on.
  at::Tensor own_seed_and_step{}, shared{};

  /// The value of a scheduled parameter; undefined if it is not scheduled.
  at::Tensor value_of(ScheduledParameter parameter, const StepConfig& config) const;
  /// Seed and step of dropout in a batch slice of this process.
  at::Tensor dropout_seed_of(int64_t slice) const {
    return shared.defined() ? own_seed_and_step.select(0, slice) : seed_and_step;
  }

  /// All tensors in a fixed order. unpack() is the inverse; `like` has the same names and numbers.
  std::vector<at::Tensor> pack() const;
  static StepInputs unpack(const std::vector<at::Tensor>& tensors, const StepInputs& like);
  /// The names of the tensors of pack().
  std::vector<std::string> names(const StepConfig& config) const;
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
  /// All outputs in one fp64 tensor, which takes one copy to the host; see StepNumbers.
  at::Tensor in_one() const;
};

/// What a process may request of all processes after a step.
enum class StepRequest : size_t { kStop, kEvaluate, kSave };
constexpr size_t kStepRequests = 3;

/// Sums over processes: correct predictions, targets of samples that are not broken, all targets,
/// processes that make each request, processes that failed in the step, and the loss of each slice.
enum SharedSum : size_t {
  kSharedTop1,
  kTargets,
  kAllTargets,
  kFirstRequest,
  kMissing = kFirstRequest + kStepRequests,
  kFirstLoss
};

/// The outputs of a step on the host.
struct StepNumbers {
  double loss_sum = 0, gradient_norm = 0, spike = 0;
  double target_count = 0;            ///< If counts are computed on the device.
  int64_t correct = 0;                ///< If it is counted, and processes do not share the step.
  std::vector<double> shared_sums{};  ///< If processes share the step: indexed by SharedSum.

  /// Waits for the outputs.
  static StepNumbers of(const StepOutputs& outputs);
  /// `numbers` is a copy of StepOutputs::in_one().
  static StepNumbers of(const std::vector<double>& numbers, bool counts_on_device, bool is_shared);
  /// The maximum number of elements of StepOutputs::in_one().
  static int64_t most(bool counts_on_device, bool is_shared, size_t losses);
};

}  // namespace gallop::train
