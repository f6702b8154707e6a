#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether this thread is in a dry run of a compiler that records operators.
bool is_recorded();

/// x without its gradient. While operators are recorded the result is a separate tensor, which the
/// compiler does not merge with x: computations on both are kept apart,
/// so that intended recomputation stays. See the compiler's pass "barriers".
at::Tensor barrier(const at::Tensor& x);

}  // namespace gallop::kernel
