#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

// What Muon's step does besides matrix products, in two passes over memory, as operators whose
// numbers that change from step to step are tensors: so they can be part of a recorded step.
namespace gallop::kernel {

/// Matrices of one size, each the rows of a contiguous fp32 tensor on the CPU, in parallel lists.
struct MuonStep {
  std::vector<at::Tensor> parameters{}, gradients{}, momentums{};
  std::vector<double> keep_rates{};  ///< weight_decay * lr_factor: what of lr a parameter loses.
  std::vector<double> rates{};       ///< Factors of lr by which it moves.
  at::Tensor lr{};                   ///< fp32, no dimensions, as the two that follow.
  at::Tensor grad_scale{};           ///< Divides the gradients; may be undefined.
  at::Tensor found_inf{};  ///< If defined and not 0, no momentum and no parameter changes.
  double memory = 0;       ///< Of the momentum.
  bool nesterov = false;
};

/// momentum = memory * momentum + (1 - memory) * gradient, and returns the directions of all over
/// their Euclidean norms (at least `eps`): [matrices, rows, columns] of `type`, fp32 or bf16.
at::Tensor muon_directions(const MuonStep& step, at::ScalarType type, double eps);

/// parameter = parameter * (1 - lr * keep_rate) - lr * rate * change, of changes as above.
void muon_update(const MuonStep& step, const at::Tensor& changes);

}  // namespace gallop::kernel
