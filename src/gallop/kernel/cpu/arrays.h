#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Functions of arrays of `count` elements.
struct ArrayKernels {
  void (*widen)(const Bf16* from, float* to, int64_t count);
  void (*add)(const Bf16* from, float* to, int64_t count);  ///< to += from
  void (*scale_fp32)(float* numbers, float factor, int64_t count);
  void (*scale_bf16)(Bf16* numbers, float factor, int64_t count);
};

}  // namespace gallop::kernel
