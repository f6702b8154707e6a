#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Channels that one task sums.
inline constexpr int64_t kGlobalAvgPoolChannels = 64;

/// Images [N, pixels, channels] in memory.
struct GlobalAvgPoolSizes {
  int64_t pixels, channels;
};

template <typename Number>
struct GlobalAvgPoolKernels {
  /// Tasks [begin, end) of the means y [N, channels]: task n * blocks + b computes block b of
  /// kGlobalAvgPoolChannels channels of image n.
  void (*forward)(const GlobalAvgPoolSizes& sizes, const Number* x, Number* y, int64_t begin,
                  int64_t end);
  /// Pixels [begin, end) of dx, numbered n * pixels + i, from dy [N, channels].
  void (*backward)(const GlobalAvgPoolSizes& sizes, const Number* dy, Number* dx, int64_t begin,
                   int64_t end);
};

}  // namespace gallop::kernel
