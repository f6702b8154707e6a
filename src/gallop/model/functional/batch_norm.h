#pragma once

#include "gallop/kernel/batch_norm.h"

namespace gallop::model::functional {

struct BatchNormOptions {
  bool training = true;
  bool relu = false;
};

/// y = relu(batch_norm(x) + residual); `residual` may be undefined. In training, uses one fused
/// operator with its own backward if the kernel supports x, otherwise LibTorch's operators. The
/// fused operator has no second derivatives and throws UsageError for them.
at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& residual,
                      const kernel::BatchNormParameters& parameters,
                      const BatchNormOptions& options);

/// One tensor for two consumers.
struct Fork {
  at::Tensor first, second;
};
inline std::vector<at::Tensor> tensors_of(const Fork& fork) { return {fork.first, fork.second}; }

/// Like batch_norm(), returning y twice in the same memory: the backward pass reads both gradients,
/// whereas a single y would need an extra pass to add them. Neither may be modified in place.
Fork batch_norm_fork(const at::Tensor& x, const at::Tensor& residual,
                     const kernel::BatchNormParameters& parameters,
                     const BatchNormOptions& options);

}  // namespace gallop::model::functional
