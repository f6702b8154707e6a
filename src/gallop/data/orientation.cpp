#include "gallop/data/orientation.h"

#include <utility>

namespace gallop::data {

Orientation::Orientation(int exif)
    : flips_rows(exif == 3 || exif == 4 || exif == 6 || exif == 7),
      flips_columns(exif == 2 || exif == 3 || exif == 7 || exif == 8),
      transposes(exif >= 5) {}

Region OrientedRegion::choose(int height, int width) {
  height_ = height;
  width_ = width;
  if (orientation_.transposes) std::swap(height, width);
  Region region = chooser_->choose(height, width);
  if (orientation_.transposes) {
    std::swap(region.top, region.left);
    std::swap(region.height, region.width);
  }
  if (orientation_.flips_rows) region.top = height_ - region.top - region.height;
  if (orientation_.flips_columns) region.left = width_ - region.left - region.width;
  return region;
}

void OrientedRegion::turn(Image& image, std::vector<uint8_t>& buffer) const {
  const int64_t height = image.height, width = image.width, channels = image.channels;
  const size_t bytes = static_cast<size_t>(height * width * channels);
  if (buffer.size() < bytes) buffer.resize(bytes);
  // Output offsets between adjacent pixels of a stored row, and between adjacent rows.
  int64_t column_step = orientation_.transposes ? height : 1;
  int64_t row_step = orientation_.transposes ? 1 : width;
  int64_t start = 0;
  if (orientation_.flips_columns) {
    start += column_step * (width - 1);
    column_step = -column_step;
  }
  if (orientation_.flips_rows) {
    start += row_step * (height - 1);
    row_step = -row_step;
  }
  const uint8_t* in = image.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    int64_t out = start + y * row_step;
    for (int64_t x = 0; x < width; ++x, out += column_step) {
      for (int64_t c = 0; c < channels; ++c)
        buffer[static_cast<size_t>(out * channels + c)] = *in++;
    }
  }
  image.pixels.swap(buffer);
  // The last pixels of a reduced image may extend beyond the whole image, so these may be negative.
  if (height_ > 0 && orientation_.flips_rows) {
    image.top = height_ - image.top - image.height * image.reduction;
  }
  if (width_ > 0 && orientation_.flips_columns) {
    image.left = width_ - image.left - image.width * image.reduction;
  }
  if (orientation_.transposes) {
    std::swap(image.height, image.width);
    std::swap(image.top, image.left);
  }
}

}  // namespace gallop::data
