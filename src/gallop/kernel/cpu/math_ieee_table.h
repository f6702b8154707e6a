#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// The functions of simd_ieee.h and math_ieee.h on arrays, for their tests: 16 elements in, 16
/// out.
struct MathIeeeTable {
  using Unary = void (*)(const float* x, float* y);
  using Binary = void (*)(const float* a, const float* b, float* y);
  Unary exp, expm1, log1p, sigmoid, tanh, erf;
  Unary round_down, round_up, round_to_zero, flip_sign, without_sign, as_bf16, exact_root;
  Binary max, min, divide, with_sign_of;
  Binary is_equal, is_less, is_less_equal;  ///< Return 1 or 0.
  /// Writes which of the first n bytes of two masks differ.
  void (*differ)(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n);
};

}  // namespace gallop::kernel
