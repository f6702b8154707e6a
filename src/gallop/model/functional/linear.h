#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/activation_kind.h"

namespace gallop::model::functional {

/// act(x W^T + bias) with its gradients; weight [N, K], bias [N] or undefined. Uses gallop's kernel
/// where it is fastest (kernel/linear.h), which under bf16 autocast reads the parameters directly
/// in fp32; otherwise LibTorch's GEMM.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  std::optional<kernel::Activation> activation = {});

}  // namespace gallop::model::functional
