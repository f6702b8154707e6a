#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// A view of pixels: `height` x `width` x `channels` bytes without gaps.
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

/// Weights of the source pixels for each output pixel of one axis: a triangle filter as wide as the
/// reduction, as in Pillow and torchvision (antialias=True).
class AxisWeights {
 public:
  /// 14 fractional bits, so that products of two fit pmaddwd.
  static constexpr int kBits = 14;

  int taps = 0;                  ///< Even; padded with weights of 0.
  std::vector<int> begin, end;   ///< Source pixels [begin, end) of each output pixel, both rising.
  std::vector<int16_t> weights;  ///< [outputs, taps]; each row sums to 1.

  /// For `outputs` pixels over [from, from + extent) of an axis of `size` pixels. Nothing outside
  /// that span, widened to whole pixels, is read.
  void compute(double from, double extent, int size, int outputs);

 private:
  std::vector<double> exact_;
};

/// Crops a box of an image and resizes it, in integer arithmetic, so that all machines agree to the
/// bit. Within 1 of 255 levels of Pillow's bilinear filter. Reuses its buffers.
class Resizer {
 public:
  /// `box` must be within `source`; `out` has height x width x channels bytes.
  void resize(const PixelView& source, const Box& box, int height, int width, uint8_t* out);

 private:
  AxisWeights rows_, columns_;
  std::vector<int16_t> row_;
  std::vector<const uint8_t*> lines_;
};

}  // namespace gallop::data
