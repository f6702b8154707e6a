#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether this thread is in a dry run of a compiler that records its operators.
bool is_recorded();

/// x, without its gradient. While operators are recorded it is a tensor of its own, for which the
/// compiler does not take x, nor what is computed of the one for what is computed of the other:
/// so what is meant to be computed twice is. See the compiler's pass "barriers".
at::Tensor barrier(const at::Tensor& x);

}  // namespace gallop::kernel
