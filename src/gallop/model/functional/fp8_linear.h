#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Whether fp8_linear() supports a weight [N, K] of these sizes: multiples of 16, as GPU fp8 GEMMs
/// require.
bool takes_fp8_linear(at::IntArrayRef weight_sizes);

/// x W^T + bias in bf16, where this GEMM and the two of its gradients take fp8 operands: x and W in
/// e4m3, the gradient of y in e5m2 (Micikevicius et al., "FP8 formats for deep learning", 2022).
/// Each tensor is divided by its own dynamic scale, computed on the device, which maps its largest
/// magnitude to the format's maximum: torchao's "tensorwise" recipe. Non-finite inputs give
/// non-finite results. x [.., K], weight [N, K] and bias [N], which may be undefined, are fp32 or
/// bf16; gradients have the same dtypes. Also works on the CPU.
at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace gallop::model::functional
