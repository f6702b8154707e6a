#pragma once

#include "gallop/kernel/optimizer_step.h"

namespace gallop::kernel {

/// update() by LibTorch's operators, for fp64 and for devices without our kernels. About
/// ten operators per parameter and state, hence much slower; no synchronization. Parameters,
/// states and gradients have one floating-point type, and no state is in 8 bits.
void update_by_operators(const OptimizerStep& step);

}  // namespace gallop::kernel
