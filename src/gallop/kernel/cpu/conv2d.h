#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Numbers of a pixel and its neighbors that lie side by side, and what they are multiplied by.
struct Conv2dStep {
  int64_t offset;  ///< From the pixel's first number, in numbers.
  int64_t weight;  ///< Where kInner numbers for each of 16 channels begin, paired as in layout.h.
};

/// Pixels [i] of a convolution's result for 16 channels, and what they are made of.
struct Conv2dBlock {
  static constexpr int64_t kTiles = 4, kPixels = 16;

  const Bf16* from[kTiles];  ///< Of each tile's first pixel.
  int64_t from_stride;       ///< Between neighbors, in numbers.
  Bf16* to[kTiles];
  int64_t to_stride;
};

struct Conv2dKernels {
  static constexpr int64_t kInner = 32, kHalf = 16;  ///< Numbers of a step.
  static constexpr int64_t kStateBytes = 64;

  /// As of GemmKernels.
  void (*begin)(void* state);
  void (*end)(const void* state);
  /// Sums over `full` steps of kInner numbers and, behind these, `half` ones of kHalf.
  void (*run)(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
              const Bf16* weights);
};

}  // namespace gallop::kernel
