#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// silu(a) * b of x [.., 2C] = [a, b] with its gradient, by gallop's kernel where it takes x
/// (kernel/swiglu.h), else by LibTorch's operators.
at::Tensor swiglu(const at::Tensor& x);

}  // namespace gallop::model::functional
