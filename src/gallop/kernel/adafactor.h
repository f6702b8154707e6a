#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

// Adafactor's step as an operator whose step-dependent scalars are tensors, so that it can be part
// of a recorded step.
namespace gallop::kernel {

/// Parameters to update, in parallel lists: fp32, contiguous, on the CPU. The last two dimensions
/// of a parameter with two or more are matrices.
struct AdafactorStep {
  std::vector<at::Tensor> parameters{}, gradients{};
  std::vector<at::Tensor> rows{};     ///< Mean squares [..., R, 1]; for a vector, of each element.
  std::vector<at::Tensor> columns{};  ///< Mean squares [..., 1, C]; undefined for a vector.
  at::Tensor steps{};                 ///< fp32: the number of updates of each parameter.
  std::vector<int64_t> indices{};     ///< Of each parameter in `steps`.
  std::vector<double> weight_decays{}, lr_factors{};
  at::Tensor lr{};          ///< fp32, 0-dim, like the two that follow.
  at::Tensor grad_scale{};  ///< Divides the gradients; may be undefined.
  at::Tensor found_inf{};   ///< If defined and not 0, nothing is updated or counted.
  double beta2_decay = 0, eps1 = 0, eps2 = 0, d = 1;
  bool relative_step = true, scale_parameter = true;
};

/// Updates by the formula of optim/adafactor.h. The order of reductions does not depend on the
/// number of threads.
void adafactor(const AdafactorStep& step);

}  // namespace gallop::kernel
