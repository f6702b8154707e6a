#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// A range of consecutive elements of a pixel and its neighbors, and the weights for it.
struct Conv2dStep {
  int64_t offset;  ///< From the pixel's first element, in elements.
  int64_t
      weight;  ///< Offset of kInner weights for each of 16 channels, VNNI-packed as in layout.h.
};

/// Output pixels [i] of a convolution for 16 channels, and their inputs.
struct Conv2dBlock {
  static constexpr int64_t kTiles = 4, kPixels = 16;

  const Bf16* from[kTiles];  ///< The first input pixel of each tile.
  int64_t from_stride;       ///< Between neighbors, in elements.
  Bf16* to[kTiles];
  int64_t to_stride;
};

struct Conv2dKernels {
  static constexpr int64_t kInner = 32, kHalf = 16;  ///< Elements of a step.
  static constexpr int64_t kStateBytes = 64;

  /// See GemmKernels.
  void (*begin)(void* state);
  void (*end)(const void* state);
  /// Sums over `full` steps of kInner elements, followed by `half` steps of kHalf, to which the
  /// bias of 16 channels is added.
  void (*run)(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
              const Bf16* weights, const float* bias);
};

}  // namespace gallop::kernel
