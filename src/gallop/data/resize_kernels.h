#pragma once

#include <cstdint>

namespace gallop::data {

/// Fractional bits of the intermediate values between the two passes.
inline constexpr int kBetweenBits = 7;
/// Values that `blend_columns` may read beyond the last pixel.
inline constexpr int kRowSlack = 16;

/// The two passes of a resize. All implementations are bitwise equal.
struct ResizeKernels {
  /// out[x] = sum over k of weights[k] * rows[k][x], for `count` bytes; `taps` is even.
  void (*blend_rows)(const uint8_t* const* rows, const int16_t* weights, int taps, int count,
                     int16_t* out);
  /// out[x] = weighted sum of `taps` pixels of `row` from begin[x] on, for `outputs` pixels.
  void (*blend_columns)(const int16_t* row, const int* begin, const int16_t* weights, int taps,
                        int outputs, int channels, uint8_t* out);
};

/// The portable implementation in plain C++.
ResizeKernels portable_resize_kernels();
/// The fastest implementation for this CPU.
ResizeKernels best_resize_kernels();

}  // namespace gallop::data
