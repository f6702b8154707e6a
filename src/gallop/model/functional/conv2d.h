#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Convolution of [N, C, H, W] with a square or other window, weight [out, C, height, width], bias
/// [out] or undefined, with its gradients. That of the weight is by gallop's kernel where it is the
/// fastest (kernel/conv2d_wgrad.h), which under autocast to bf16 gives it in fp32 at once, and so
/// are there the convolution and the gradient of x (kernel/conv2d.h); all else by LibTorch's
/// operators.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  int64_t stride, int64_t padding);

}  // namespace gallop::model::functional
