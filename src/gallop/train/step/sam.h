#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

/// Moves parameters along their gradients for as long as it lives, for sharpness-aware minimization
/// (StepConfig::sam): the second pass of a step takes the gradients there.
class SamPerturbation {
 public:
  /// Moves the parameters by `distance` in the direction of the gradients, whose norm is `norm`, a
  /// scalar. At the end, also of a step that runs out of memory, the parameters and `buffers` are
  /// as before.
  SamPerturbation(const NamedTensors& parameters, const NamedTensors& buffers,
                  const at::Tensor& norm, double distance);
  ~SamPerturbation() { before_.restore(); }
  SamPerturbation(const SamPerturbation&) = delete;
  SamPerturbation& operator=(const SamPerturbation&) = delete;

 private:
  TensorSnapshot before_{NamedTensors()};
};

}  // namespace gallop::train
