#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// The steps of weight gradients other than GEMMs: their operands are rows (pixels, samples) of
/// channels, and the GEMMs reduce over rows. Strides are in elements.
struct WeightGradientKernels {
  /// Interleaves pairs of rows: to[i, 2 c + parity] = from[(2 i + parity) * stride + c] for an even
  /// number of rows and c < `width`, a multiple of 16.
  void (*interleave)(const Bf16* from, int64_t stride, int64_t rows, int64_t width, Bf16* to);
  /// to[c, i] = from[i, c] for up to 32 rows and up to 16 channels, without gaps in `to`.
  void (*turn)(const Bf16* from, int64_t stride, int64_t rows, int64_t channels, Bf16* to);
  /// to[c, i] = channel c of pixel i, for 32 pixels given as 16 pairs of neighbors, `stride` apart,
  /// and up to 16 channels from `first` on.
  void (*turn_pairs)(const Bf16* const* pairs, int64_t stride, int64_t first, int64_t channels,
                     Bf16* to);
  /// to = from or its transpose, in bf16, for sizes that are multiples of 16.
  void (*round)(const float* from, int64_t rows, int64_t columns, Bf16* to, int64_t to_stride);
  void (*round_transposed)(const float* from, int64_t rows, int64_t columns, Bf16* to,
                           int64_t to_stride);
};

}  // namespace gallop::kernel
