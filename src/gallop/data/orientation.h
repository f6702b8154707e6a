#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// What one of the eight EXIF orientations does to the stored pixels: both flips first, then rows
/// become columns.
struct Orientation {
  explicit Orientation(int exif);

  bool flips_rows;
  bool flips_columns;
  bool transposes;
};

/// Hands a request for a part on in the coordinates of the stored pixels.
class OrientedRegion final : public RegionChooser {
 public:
  /// `chooser` sees the image as it is to be seen, and may be null.
  OrientedRegion(RegionChooser* chooser, const Orientation& orientation)
      : chooser_(chooser), orientation_(orientation) {}

  Region choose(int height, int width) override;

  /// Turns what a decoder gave for the request, with the place of its pixels in the whole image.
  /// `buffer` is another image's and is reused.
  void turn(Image& image, std::vector<uint8_t>& buffer) const;

 private:
  RegionChooser* chooser_;
  Orientation orientation_;
  int height_ = 0, width_ = 0;  // Of the whole image as stored; 0 where no part was asked for.
};

}  // namespace gallop::data
