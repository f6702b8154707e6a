#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// Whether linear_wgrad() supports these and is the fastest way: on the CPU with tiles, dy [R, N]
/// and x [R, K] in bf16, N and K multiples of 16, of many rows.
bool takes_linear_wgrad(const at::Tensor& dy, const at::Tensor& x);

/// The gradient of a linear layer's weight, dy^T x, in bf16 [N, K], for large layers, for which
/// linear_backward() is not the fastest. Accumulates in fp32 over the rows in order, so that no
/// bit depends on the number of threads.
at::Tensor linear_wgrad(const at::Tensor& dy, const at::Tensor& x);

/// linear_wgrad() by one instruction set, not as an operator: for tests.
at::Tensor linear_wgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& x);

}  // namespace gallop::kernel
