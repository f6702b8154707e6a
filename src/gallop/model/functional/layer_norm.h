#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

struct NormedSum {
  at::Tensor y;
  at::Tensor sum;  ///< x + residual; x itself without residual.
};

/// Layer norm or RMS norm of x + residual over the last dimension [C], with all gradients. Residual
/// and bias may be undefined; weight and bias [C]. Under autocast to bf16 y is bf16, for the matrix
/// product that follows, else it has the sum's format. By gallop's kernel where it takes the
/// tensors (kernel/layer_norm.h), else by LibTorch's operators.
NormedSum layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                     const at::Tensor& bias, double eps, bool rms);

}  // namespace gallop::model::functional
