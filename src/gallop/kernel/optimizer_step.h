#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

// The passes of update.h as operators, whose numbers that change from step to step are tensors: so
// they can be part of a recorded step. All tensors are dense and on one device, the CPU or a GPU
// that has our kernels (kernel/cuda/launcher.h), those of one parameter in one memory layout;
// parameters and states are fp32, gradients fp32 or bf16.
namespace gallop::kernel {

// They count as changes in place of the parameters, as those of LibTorch's operators do.

/// Parameters that are updated, in parallel lists.
struct OptimizerStep {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<double> weight_decays;
  std::vector<int64_t> indices;  ///< Of each parameter's count among `steps`.
  at::Tensor steps;  ///< fp32: how often each has been updated, which this counts. May be undefined
                     ///< where nothing depends on it.
  at::Tensor lr;     ///< fp32, no dimensions, as the two that follow.
  at::Tensor divisor;  ///< Divides the gradients; may be undefined.
  at::Tensor skip;     ///< If defined and not 0, nothing is updated nor counted.
  /// By parameter: a bf16 tensor of its layout that gets what it is then, rounded, or undefined.
  /// May be empty.
  std::vector<at::Tensor> shadows{};
};

struct AdamwOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// AdamW; see AdamwTensor. Returns the norm of the gradients before they are divided: fp64, no
/// dimensions.
at::Tensor adamw(const OptimizerStep& step, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                 const AdamwOptions& options);

struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};

/// SGD; see SgdTensor. `momentum_buffers` are empty without momentum. The first gradient makes up
/// the whole of the momentum, whatever the dampening, for which `steps` must be there. Returns the
/// norm as adamw() does.
at::Tensor sgd(const OptimizerStep& step, at::TensorList momentum_buffers,
               const SgdOptions& options);

/// Euclidean norm of all of them together, as norm() of update.h: fp64, no dimensions.
at::Tensor norm(at::TensorList tensors);

}  // namespace gallop::kernel
