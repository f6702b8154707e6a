#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/bodies.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// What conv2d_weight() does besides products.
struct Conv2dWeightBodies {
  /// Pairs of pixels woven: to[i, 2 c + parity] = row[(2 i + parity) * step + c] for an even number
  /// of pixels and `width` c, a multiple of 16.
  void (*weave)(const Bf16* row, int64_t pixels, int64_t step, int64_t width, Bf16* to);
  /// to[c, i] = from[i, c] of some 32 pixels and some 16 channels, without gaps.
  void (*turn)(const Bf16* from, int64_t pixels, int64_t channels, Bf16* to);
};

}  // namespace gallop::kernel
