#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Whether fp8_linear() takes a weight [N, K] of these sizes: multiples of 16, as the products of
/// GPUs do.
bool takes_fp8_linear(at::IntArrayRef weight_sizes);

/// x W^T + bias in bf16, where this product and the two of its gradients are of fp8 numbers: x and
/// W in e4m3, the gradient of y in e5m2 (Micikevicius et al., "FP8 formats for deep learning",
/// 2022). Each tensor is divided by a scale of its own, by which its largest number becomes the
/// format's largest, found again whenever it is needed and on the device: torchao's "tensorwise"
/// recipe. What is not finite makes the result so. x [.., K], weight [N, K] and bias [N], which may
/// be undefined, are in fp32 or bf16; gradients are in the formats of these. Also on the CPU.
at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace gallop::model::functional
