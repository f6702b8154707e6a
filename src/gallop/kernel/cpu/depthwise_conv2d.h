#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Elements that a window may have.
inline constexpr int64_t kMostDepthwiseTaps = 64;

/// The sizes of a depthwise convolution of images [N, H, W, C] in memory.
struct DepthwiseSizes {
  int64_t channels;
  int64_t height, width;          ///< Of x.
  int64_t out_height, out_width;  ///< Of y.
  int64_t window_height, window_width;
  int64_t stride, padding, dilation;
};

/// A row of images is numbered n * height + h.
template <typename Number>
struct DepthwiseKernels {
  /// Rows [begin, end) of the gradient of x. `weight` is [window_height * window_width, C].
  void (*data_gradient)(const DepthwiseSizes& sizes, const Number* dy, const float* weight,
                        Number* dx, int64_t begin, int64_t end);
  /// Adds the sums over rows [begin, end) of dy to the gradients of `weight`, and of `bias` unless
  /// it is null.
  void (*weight_gradient)(const DepthwiseSizes& sizes, const Number* dy, const Number* x,
                          float* weight, float* bias, int64_t begin, int64_t end);
};

}  // namespace gallop::kernel
