#pragma once

#include "gallop/kernel/optimizer_step.h"

namespace gallop::kernel {

/// What update() does, by LibTorch's operators: for fp64 and for devices without our kernels. Some
/// ten operators a parameter and state, so far slower; nothing is read on the host. Parameters,
/// states and gradients are of one floating type, and no state is in 8 bits.
void update_by_operators(const OptimizerStep& step);

}  // namespace gallop::kernel
