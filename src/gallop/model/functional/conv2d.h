#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Convolution of [N, C, H, W] with its gradients; weight [out, C, height, width], bias [out] or
/// undefined. On the CPU under bf16 autocast, the weight gradient uses the kernel of gallop if it
/// supports the sizes (kernel/conv2d_wgrad.h), which returns it directly in fp32; the forward and
/// the gradient of x then use kernels, too, if supported (kernel/conv2d.h). Everything else uses
/// the operators of LibTorch.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  int64_t stride, int64_t padding);

}  // namespace gallop::model::functional
