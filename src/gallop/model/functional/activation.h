#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/activation_kind.h"

namespace gallop::model::functional {

/// act(x + bias) with its gradients; bias [C] is added to the last dimension and may be undefined.
/// By gallop's kernel where it takes x (kernel/activation.h), else by LibTorch's operators.
at::Tensor activation(kernel::Activation kind, const at::Tensor& x, const at::Tensor& bias = {});

}  // namespace gallop::model::functional
