#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/data/image.h"
#include "gallop/data/resize.h"

namespace gallop::data {

/// An image that is whole but has another shape than the rest. It is never skipped as damaged.
class ShapeError : public DataError {
 public:
  using DataError::DataError;
};

/// Reads images and brings them to one shape.
class ImageShaper {
 public:
  /// Buffers of one thread.
  struct Buffers {
    Image image;
    Resizer resizer;
    std::vector<uint8_t> resized;
  };

  /// `images` must outlive the shaper. With `resize`, the middle square of each image is brought to
  /// `shape`; without, each must have it.
  ImageShaper(const ImageSet& images, const ImageShape& shape, bool resize);

  const ImageShape& shape() const { return shape_; }

  /// Pixels of one image, which lie in the set or in the buffers. `cutter`, where not null, says
  /// which part of the original is brought to the shape. Throws DataError where the image is
  /// damaged, ShapeError where it has another shape and is not to be resized.
  const uint8_t* read(int64_t index, RegionChooser* cutter, Buffers& buffers) const;

 private:
  const uint8_t* fit(const PixelView& source, const Box& box, Buffers& buffers) const;
  void check_shape(int64_t index, const Image& image) const;

  const ImageSet& images_;
  ImageShape shape_;
  bool resize_;
  bool stored_;  ///< The set holds the pixels in memory, in as many channels as are wanted.
};

}  // namespace gallop::data
