#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/activation_kind.h"

namespace gallop::model::functional {

/// act(x + bias) with gradients; bias [C] is added along the last dimension and may be undefined.
/// Uses gallop's kernel if it supports x (kernel/activation.h), otherwise LibTorch's operators.
at::Tensor activation(kernel::Activation kind, const at::Tensor& x, const at::Tensor& bias = {});

}  // namespace gallop::model::functional
