#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// The functions of simd.h and math.h on arrays, for their tests: 16 elements in, 16 out.
struct MathTable {
  void (*exp)(const float* x, float* y);
  void (*log)(const float* x, float* y);
  void (*sigmoid)(const float* x, float* y);
  void (*tanh)(const float* x, float* y);
  void (*erf)(const float* x, float* y);
  void (*root)(const float* x, float* y);
  void (*quotient)(const float* x, float* y);  ///< 1 / x
  void (*inverse)(const float* x, float* y);
  void (*to_bf16)(const float* x, Bf16* y, int64_t n);
  void (*from_bf16)(const Bf16* x, float* y, int64_t n);
};

}  // namespace gallop::kernel
