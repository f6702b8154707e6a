#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// Pixels that another object owns: `height` x `width` x `channels` bytes without gaps.
struct PixelView {
  const uint8_t* pixels = nullptr;
  int height = 0;
  int width = 0;
  int channels = 0;
};

/// A rectangle whose edges may lie within pixels.
struct Box {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

/// Weights of the source pixels that each output pixel of one axis is the mean of: a triangle
/// filter, as wide as the reduction, as Pillow and torchvision (antialias=True) resize.
class AxisWeights {
 public:
  /// 14 bits after the point, so that products of two fit pmaddwd.
  static constexpr int kBits = 14;

  int taps = 0;                  ///< Even; weights beyond the true ones are 0.
  std::vector<int> begin, end;   ///< Source pixels [begin, end) of each output pixel, both rising.
  std::vector<int16_t> weights;  ///< [outputs, taps]; each row sums to 1.

  /// For `outputs` pixels over [from, from + extent) of an axis of `size` pixels. Nothing outside
  /// that span, widened to whole pixels, is read.
  void compute(double from, double extent, int size, int outputs);

 private:
  std::vector<double> exact_;
};

/// Cuts a box out of an image and resizes it, in integers, so that all machines agree to the bit.
/// Within 1 of 255 levels of Pillow's bilinear filter. Keeps its buffers between images.
class Resizer {
 public:
  /// `box` within `source`; `out` takes height x width x channels bytes.
  void resize(const PixelView& source, const Box& box, int height, int width, uint8_t* out);

 private:
  AxisWeights rows_, columns_;
  std::vector<int16_t> row_;
  std::vector<const uint8_t*> lines_;
};

}  // namespace gallop::data
