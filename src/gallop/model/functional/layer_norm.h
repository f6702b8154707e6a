#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// What is normed: x + residual + bias. Residual and its bias [C] may be undefined.
struct Summands {
  at::Tensor x;
  at::Tensor residual{};
  at::Tensor bias{};
};

struct NormedSum {
  at::Tensor y;
  at::Tensor sum;  ///< x itself without residual.
};

/// Layer norm or RMS norm of a sum over the last dimension [C], with all gradients. weight and bias
/// [C], bias may be undefined. Under autocast to bf16 y is bf16, for the matrix product that
/// follows, else it has the sum's format. By gallop's kernel where it takes the tensors
/// (kernel/layer_norm.h), else by LibTorch's operators.
NormedSum layer_norm(const Summands& in, const at::Tensor& weight, const at::Tensor& bias,
                     double eps, bool rms);

/// The sum alone.
at::Tensor sum_of(const Summands& in);

}  // namespace gallop::model::functional
