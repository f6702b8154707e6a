#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Number of elements for which 16 Philox counters provide random bits, 8 each.
inline constexpr int64_t kDropoutGroup = 128;

/// Sets elements to 0 if 16 random bits are less than `threshold`, and multiplies others by
/// `scale`. Element i = 128 g + 16 v + l uses half v % 2 (the lower first) of word v / 2 of counter
/// {16 g + l, counter[0], counter[1], counter[2]}.
struct DropoutDraw {
  uint32_t key[2], counter[3];
  float threshold, scale;
};

struct DropoutKernels {
  /// For `count` elements from the start of group `group` on; x may be y.
  void (*fp32)(const DropoutDraw& draw, int64_t group, const float* x, float* y, int64_t count);
  void (*bf16)(const DropoutDraw& draw, int64_t group, const Bf16* x, Bf16* y, int64_t count);
};

}  // namespace gallop::kernel
