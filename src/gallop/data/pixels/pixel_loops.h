#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gallop/data/pixels/tables.h"

namespace gallop::data::pixels {

/// Maps the pixels of one output row to source positions, in the single precision of torchvision's
/// grids: `from_x`, `from_y` [3] are coefficients of (x, y, 1), and x and y are measured from the
/// center of the image. For a perspective, `divisor` are those of what both are divided by, and x
/// and y are measured from the corner on the top left.
struct WarpRow {
  std::array<float, 3> from_x{}, from_y{}, divisor{};
  bool is_perspective = false;
  float y = 0;
  int height = 0, width = 0;
};

/// The four source pixels around each position of a row, as indices, or -1 outside the image, and
/// the position between them.
struct Corners {
  int32_t *top_left, *top_right, *bottom_left, *bottom_right;
  float *right, *bottom;  ///< Fractions in 0..1.
};

/// The values of the four corners of each pixel of a row, and the fractions of Corners.
struct CornerValues {
  const uint8_t *top_left, *top_right, *bottom_left, *bottom_right;
  const float *right, *bottom;
};

inline constexpr int64_t kBlurSlack = 64;

/// Loops over pixels; `rgb` are interleaved. All implementations are bitwise equal. `out` may be
/// the input where an operation maps pixels one by one.
struct PixelLoops {
  /// The sum of the floored gray values.
  uint64_t (*gray_sum)(const uint8_t* rgb, int64_t pixels);
  void (*grayscale)(const uint8_t* rgb, int64_t pixels, uint8_t* out);
  /// own * value + other * floored gray.
  void (*saturate)(const uint8_t* rgb, int64_t pixels, float own, float other, uint8_t* out);
  void (*turn_hue)(const uint8_t* rgb, int64_t pixels, float shift, uint8_t* out);
  /// `count` values of a row between its outermost pixels; `above`, `row`, `below` and `out` begin
  /// at the first of these values, `channels` values after the row's begin.
  void (*sharpen)(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t count,
                  int channels, float other, uint8_t* out);
  /// The smallest and the largest value of each channel.
  void (*extremes)(const uint8_t* values, int64_t pixels, int channels, uint8_t* low,
                   uint8_t* high);
  /// `count` values of the convolution of rows that are `stride` apart, from `rows` on, with a
  /// kernel [height, width]; up to kBlurSlack values behind them are read.
  void (*blur)(const float* rows, int64_t stride, const float* kernel, int height, int width,
               int channels, int64_t count, uint8_t* out);
  /// The index of the nearest source pixel of each output pixel; -1 outside the image.
  void (*nearest)(const WarpRow& row, int32_t* index);
  void (*corners)(const WarpRow& row, const Corners& out);
  /// Bilinear interpolation, not rounded.
  void (*interpolate)(const CornerValues& values, int64_t count, float* out);
  /// Blends with `fill` outside the image: (value - fill) * mask + fill.
  void (*fill_outside)(const float* mask, float fill, int64_t count, float* values);
  /// Rounds half to even; the values are in 0..255.
  void (*round)(const float* values, int64_t count, uint8_t* out);
  /// sum += weight * value.
  void (*accumulate)(const uint8_t* values, int64_t count, float weight, float* sum);
};

/// The portable implementation in plain C++.
PixelLoops portable_pixel_loops();
/// The fastest implementation for this CPU.
PixelLoops best_pixel_loops();

/// Applies the tables to all pixels; `out` may be `values`.
void map_values(const uint8_t* values, int64_t pixels, const ChannelTables& tables, uint8_t* out);

/// The histogram of each channel.
void count_values(const uint8_t* values, int64_t pixels, int channels, Histogram* histograms);

/// Copies the pixels with these indices of a row, through tables; -1 is the value of `fill`.
void gather_pixels(const uint8_t* source, const int32_t* index, int64_t count,
                   const ChannelTables& tables, const std::array<uint8_t, 3>& fill, uint8_t* out);

}  // namespace gallop::data::pixels
