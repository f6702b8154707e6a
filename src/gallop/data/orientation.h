#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// The transformation of one of the eight EXIF orientations: both flips first, then a
/// transposition.
struct Orientation {
  explicit Orientation(int exif);

  bool flips_rows;
  bool flips_columns;
  bool transposes;
};

/// Converts a region request to the coordinates of the stored pixels.
class OrientedRegion final : public RegionChooser {
 public:
  /// `chooser` receives the size of the rotated image and may be null.
  OrientedRegion(RegionChooser* chooser, const Orientation& orientation)
      : chooser_(chooser), orientation_(orientation) {}

  Region choose(int height, int width) override;

  /// Rotates the output of a decoder, including the position of its pixels in the whole image.
  /// `buffer` is scratch memory that is reused between images.
  void turn(Image& image, std::vector<uint8_t>& buffer) const;

 private:
  RegionChooser* chooser_;
  Orientation orientation_;
  int height_ = 0, width_ = 0;  // Stored size of the whole image; 0 if no region was requested.
};

}  // namespace gallop::data
