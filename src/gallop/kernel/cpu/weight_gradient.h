#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// What gradients of weights do besides products: their sides are rows (pixels, samples) of
/// channels, and the products are sums over rows. Strides in numbers.
struct WeightGradientKernels {
  /// Pairs of rows woven: to[i, 2 c + parity] = from[(2 i + parity) * stride + c] for an even
  /// number of rows and `width` c, a multiple of 16.
  void (*weave)(const Bf16* from, int64_t stride, int64_t rows, int64_t width, Bf16* to);
  /// to[c, i] = from[i, c] of some 32 rows and some 16 channels, without gaps in `to`.
  void (*turn)(const Bf16* from, int64_t stride, int64_t rows, int64_t channels, Bf16* to);
  /// to[c, i] = pixel i's number c of 32 pixels that come as 16 pairs of neighbors, `stride` apart,
  /// for some 16 channels from `first` on.
  void (*turn_pairs)(const Bf16* const* pairs, int64_t stride, int64_t first, int64_t channels,
                     Bf16* to);
  /// to = from, or its transposed, of sizes that are multiples of 16.
  void (*round)(const float* from, int64_t rows, int64_t columns, Bf16* to, int64_t to_stride);
  void (*round_transposed)(const float* from, int64_t rows, int64_t columns, Bf16* to,
                           int64_t to_stride);
};

}  // namespace gallop::kernel
