#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

// Muon's step except its GEMMs, in two passes over memory, as operators whose step-dependent
// scalars are tensors, so that they can be part of a recorded step.
namespace gallop::kernel {

/// Matrices of one size, each with the rows of a contiguous fp32 CPU tensor, in parallel lists.
struct MuonStep {
  std::vector<at::Tensor> parameters{}, gradients{}, momentums{};
  std::vector<double> keep_rates{};  ///< weight_decay * lr_factor: the decay of a parameter per lr.
  std::vector<double> rates{};       ///< Factors of lr for each parameter's update.
  at::Tensor lr{};                   ///< fp32, 0-dim, like the two that follow.
  at::Tensor grad_scale{};           ///< Divides the gradients; may be undefined.
  at::Tensor found_inf{};  ///< If defined and not 0, no momentum and no parameter changes.
  double memory = 0;       ///< Of the momentum.
  bool nesterov = false;
};

/// Updates momentum = memory * momentum + (1 - memory) * gradient, and returns the directions
/// over their Euclidean norms (at least `eps`): [matrices, rows, columns] of `type`, fp32 or bf16.
at::Tensor muon_directions(const MuonStep& step, at::ScalarType type, double eps);

/// parameter = parameter * (1 - lr * keep_rate) - lr * rate * change, for changes as above.
void muon_update(const MuonStep& step, const at::Tensor& changes);

}  // namespace gallop::kernel
