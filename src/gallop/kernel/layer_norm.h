#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Layer norm (Ba et al. 2016) or RMS norm (Zhang and Sennrich 2019) over the last dimension of
/// [..., C]. Computes in fp32.
struct LayerNormOptions {
  double eps = 1e-5;
  bool rms = false;
  at::ScalarType output = at::kFloat;  ///< Format of y, fp32 or bf16.
  at::Tensor residual_bias;  ///< [C], added to each row of the residual; may be undefined.
};

/// Whether layer_norm() supports them: x and residual in fp32 or bf16, of the same sizes,
/// contiguous and on the CPU; weight and the biases [C] in fp32, contiguous and on the CPU.
/// Residual and biases may be undefined.
bool takes_layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                      const at::Tensor& bias, at::ScalarType output,
                      const at::Tensor& residual_bias = {});

struct LayerNormResult {
  at::Tensor y;
  at::Tensor
      sum;  ///< x + residual + its bias, in the wider of their formats; x itself without residual.
  at::Tensor mean;     ///< Of each row of the sum; 0 for RMS norm.
  at::Tensor inverse;  ///< 1 / sqrt(the row's variance or mean square + eps).
};

/// y = (sum - mean) * inverse * weight + bias.
LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& residual,
                           const at::Tensor& weight, const at::Tensor& bias,
                           const LayerNormOptions& options);

struct LayerNormGradients {
  at::Tensor sum;            ///< In the format of the sum.
  at::Tensor sum_narrowed;   ///< The same in bf16, if requested for an fp32 sum.
  at::Tensor weight, bias;   ///< [C], fp32; bits do not depend on the number of threads.
  at::Tensor residual_bias;  ///< [C], fp32: column sums of the gradient of the sum, if requested.
};

/// The gradients for dy, the gradient of y, and dsum, another gradient of the sum, which may be
/// undefined; in one pass. `sum`, `mean` and `inverse` are results of layer_norm().
LayerNormGradients layer_norm_backward(const at::Tensor& dy, const at::Tensor& dsum,
                                       const LayerNormResult& saved, const at::Tensor& weight,
                                       bool rms, bool narrowed, bool residual_bias = false);

}  // namespace gallop::kernel
