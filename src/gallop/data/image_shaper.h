#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/data/image.h"
#include "gallop/data/resize.h"

namespace gallop::data {

/// An intact image whose shape differs from the others. It is never skipped as damaged.
class ShapeError : public DataError {
 public:
  using DataError::DataError;
};

/// The largest centered region of an image whose aspect ratio is that of `shape`.
Region middle_region(int height, int width, const ImageShape& shape);

/// Reads images and resizes them.
class ImageShaper {
 public:
  /// Buffers of one thread.
  struct Buffers {
    Image image;
    Resizer resizer;
    std::vector<uint8_t> resized;
  };

  /// `images` must outlive the shaper. With `resize`, the middle of each image is resized to
  /// `shape`; otherwise each image must have that shape.
  ImageShaper(const ImageSet& images, const ImageShape& shape, bool resize);

  const ImageShape& shape() const { return shape_; }

  /// Returns the pixels of one image, in the memory of the set or in the buffers. `cutter`, if not
  /// null, chooses the crop of the original to resize. Throws DataError if the image is damaged,
  /// ShapeError if it has another shape and resizing is off.
  const uint8_t* read(int64_t index, RegionChooser* cutter, Buffers& buffers) const;
  /// The same with another shape to resize to, of as many channels.
  const uint8_t* read(int64_t index, const ImageShape& shape, RegionChooser* cutter,
                      Buffers& buffers) const;

 private:
  static const uint8_t* fit(const PixelView& source, const Box& box, const ImageShape& shape,
                            Buffers& buffers);
  void check_shape(int64_t index, const Image& image) const;

  const ImageSet& images_;
  ImageShape shape_;
  bool resize_;
  bool stored_;  ///< The set keeps the pixels in memory with the requested channels.
};

}  // namespace gallop::data
