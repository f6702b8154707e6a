#pragma once

#include "gallop/kernel/batch_norm.h"

namespace gallop::model::functional {

struct BatchNormOptions {
  bool training = true;
  bool relu = false;
};

/// y = relu(batch norm of x + residual); `residual` may be undefined. In training by one operator
/// with its own backward where the kernel takes x, otherwise by LibTorch's: those also give second
/// derivatives, and the one operator throws UsageError there.
at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& residual,
                      const kernel::BatchNormParameters& parameters,
                      const BatchNormOptions& options);

/// One tensor for two readers.
struct Fork {
  at::Tensor first, second;
};

/// The same y twice, in the same memory: the backward pass reads both gradients, where one y would
/// first have them added in a pass of its own. Neither may be changed in place.
Fork batch_norm_fork(const at::Tensor& x, const at::Tensor& residual,
                     const kernel::BatchNormParameters& parameters,
                     const BatchNormOptions& options);

}  // namespace gallop::model::functional
