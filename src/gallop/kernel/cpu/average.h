#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Functions of arrays of `count` elements: average += share * (value - average).
struct AverageKernels {
  void (*average)(float* average, const float* value, float share, int64_t count);
  void (*average_bf16)(float* average, const Bf16* value, float share, int64_t count);
  void (*average_both)(float* average, float* value, float share, int64_t count);
};

}  // namespace gallop::kernel
