#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/activation_kind.h"

namespace gallop::model::functional {

/// act(x W^T + bias) with its gradients; weight [N, K], bias [N] or undefined. By gallop's kernel
/// where it is the fastest (kernel/linear.h), which under autocast to bf16 takes the parameters in
/// fp32 as they are; else by LibTorch's product.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  std::optional<kernel::Activation> activation = {});

}  // namespace gallop::model::functional
