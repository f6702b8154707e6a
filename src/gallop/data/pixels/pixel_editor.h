#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gallop/data/image.h"
#include "gallop/data/pixels/operations.h"
#include "gallop/data/pixels/tables.h"

namespace gallop::data::pixels {

struct WarpRow;

/// Applies operations to images, with the results of one after the other in fewer passes: those
/// that map values by tables are composed and applied with the next pass over the pixels. Reuses
/// its buffers; for one thread.
class PixelEditor {
 public:
  /// Applies `operations` in order to `source`, which has the bytes of `shape` and is not changed.
  /// Returns the result, in `source` or in the editor's buffers, where it stays until the next
  /// call.
  const uint8_t* apply(std::span<const Operation> operations, const ImageShape& shape,
                       const uint8_t* source);

 private:
  void add(const Brightness& brightness);
  void add(const Saturation& saturation);
  void add(const Contrast& contrast);
  void add(const Sharpness& sharpness);
  void add(const Hue& hue);
  void add(const Posterize& posterize);
  void add(const Solarize& solarize);
  void add(const SolarizeAdd& solarize);
  void add(const Invert& invert);
  void add(const AutoContrast& autocontrast);
  void add(const Equalize& equalize);
  void add(const Grayscale& grayscale);
  void add(const GaussianBlur& blur);
  void add(const QuarterTurns& turns);
  void add(const Warp& warp);
  void add(const Perspective& perspective);
  void add(const Mix& mix);

  void warp(const WarpRow& grid, Interpolation interpolation, const std::vector<double>& fill);
  void warp_nearest(const WarpRow& grid, const std::vector<double>& fill);
  void warp_bilinear(const WarpRow& grid, const std::vector<double>& fill);

  int64_t pixels() const { return int64_t{shape_.height} * shape_.width; }
  size_t bytes() const { return static_cast<size_t>(pixels() * shape_.channels); }
  const std::array<Histogram, ChannelTables::kMaxChannels>& histograms();
  /// Applies the pending tables.
  void apply_tables();
  /// A buffer other than that of the current pixels.
  uint8_t* other_buffer();
  /// The current pixels if they may be changed, otherwise another buffer.
  uint8_t* writable();
  void set_pixels(const uint8_t* pixels);

  ImageShape shape_;
  const uint8_t* pixels_ =
      nullptr;  // The current pixels, to which tables_ still have to be applied.
  ChannelTables tables_{1};
  std::array<std::vector<uint8_t>, 2> buffers_;
  bool counted_ = false;  // Whether histograms_ are those of pixels_.
  std::array<Histogram, ChannelTables::kMaxChannels> histograms_{};
  std::vector<int32_t> index_;
  std::vector<float> floats_;
  std::vector<uint8_t> corner_values_;
  std::unique_ptr<PixelEditor> of_chains_;
};

/// For operations that move pixels: writes the index of the nearest source pixel of each output
/// pixel, row by row, -1 outside the image, and returns true. False for others.
bool nearest_sources(const Operation& operation, int height, int width, int32_t* index);

}  // namespace gallop::data::pixels
