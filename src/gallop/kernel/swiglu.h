#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether swiglu() takes it: x [.., 2C] in fp32 or bf16, contiguous and on the CPU.
bool takes_swiglu(const at::Tensor& x);

/// silu(a) * b of x = [a, b], both [.., C] (Shazeer, "GLU variants improve transformer", 2020),
/// computed in fp32, in the format of x.
at::Tensor swiglu(const at::Tensor& x);

/// Gradient of x from dy [.., C], that of the result, in one pass.
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& x);

}  // namespace gallop::kernel
