#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"

namespace gallop::kernel {

/// The fastest multiply-adds of registers. Each function repeats a block of independent ones, and
/// returns their FLOPs.
struct PeakKernels {
  double (*fp32)(int64_t repeats);
  double (*bf16)(int64_t repeats);  ///< Null without instructions for bf16.
};

}  // namespace gallop::kernel
