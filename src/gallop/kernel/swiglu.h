#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether swiglu() supports it: x [.., 2C] in fp32 or bf16, contiguous and on the CPU.
bool takes_swiglu(const at::Tensor& x);

/// silu(a) * b for x = [a, b], both [.., C] (Shazeer, "GLU variants improve transformer", 2020),
/// computed in fp32 and returned in the format of x.
at::Tensor swiglu(const at::Tensor& x);

/// The gradient of x for dy [.., C], the gradient of the result, in one pass.
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& x);

}  // namespace gallop::kernel
