#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// The input of a norm: x + residual + bias. The residual and its bias [C] may be undefined.
struct Summands {
  at::Tensor x;
  at::Tensor residual{};
  at::Tensor bias{};
};

struct NormedSum {
  at::Tensor y;
  at::Tensor sum;  ///< x itself if there is no residual.
};

/// Layer norm or RMS norm of a sum over the last dimension [C], with all gradients. weight and bias
/// are [C]; bias may be undefined. Under bf16 autocast y is bf16, for the next GEMM; otherwise it
/// has the sum's dtype. Uses gallop's kernel if it supports the tensors (kernel/layer_norm.h),
/// otherwise LibTorch's operators.
NormedSum layer_norm(const Summands& in, const at::Tensor& weight, const at::Tensor& bias,
                     double eps, bool rms);

/// Returns only the sum.
at::Tensor sum_of(const Summands& in);

/// The summands except for the bias, which is a parameter.
std::vector<at::Tensor> tensors_of(const Summands& in);

}  // namespace gallop::model::functional
