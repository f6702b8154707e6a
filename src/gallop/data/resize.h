#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// A view of contiguous pixels: `height` x `width` x `channels` bytes.
struct PixelView {
  const uint8_t* pixels = nullptr;
  int height = 0;
  int width = 0;
  int channels = 0;
};

/// A rectangle with fractional coordinates.
struct Box {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

/// The weights of the source pixels for each output pixel along one axis: a triangle filter scaled
/// with the reduction, as in Pillow and torchvision (antialias=True).
class AxisWeights {
 public:
  /// 14 fractional bits, so that the products of two weights fit pmaddwd.
  static constexpr int kBits = 14;

  int taps = 0;                  ///< Even; padded with weights of 0.
  std::vector<int> begin, end;   ///< Source pixels [begin, end) of each output pixel, ascending.
  std::vector<int16_t> weights;  ///< [outputs, taps]; each row sums to 1.

  /// Computes weights for `outputs` pixels over [from, from + extent) of an axis of `size` pixels.
  /// Pixels outside that span, widened to whole pixels, are not read.
  void compute(double from, double extent, int size, int outputs);

 private:
  std::vector<double> exact_;
};

/// Crops a box of an image and resizes it in integer arithmetic, so that results are bitwise equal
/// on all machines and within 1 of 255 levels of Pillow's bilinear filter. Reuses its buffers.
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
