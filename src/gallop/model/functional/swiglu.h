#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// silu(a) * b of x [.., 2C] = [a, b] with its gradient. Uses gallop's kernel if it supports x
/// (kernel/swiglu.h), otherwise LibTorch's operators.
at::Tensor swiglu(const at::Tensor& x);

}  // namespace gallop::model::functional
