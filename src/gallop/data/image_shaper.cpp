#include "gallop/data/image_shaper.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/trace.h"

namespace gallop::data {

namespace {

class Middle final : public RegionChooser {
 public:
  explicit Middle(const ImageShape& shape) : shape_(shape) {}
  Region choose(int height, int width) override { return middle_region(height, width, shape_); }

 private:
  const ImageShape& shape_;
};

/// Records the chosen region, and whether the reader requested one at all.
class Remembered final : public RegionChooser {
 public:
  explicit Remembered(RegionChooser& chooser) : chooser_(chooser) {}

  Region choose(int height, int width) override {
    asked_ = true;
    return region_ = chooser_.choose(height, width);
  }

  /// The chosen region in the coordinates of the pixels that the reader returned.
  Box box_in(const Image& image) {
    if (!asked_) choose(image.height, image.width);
    const double scale = 1.0 / image.reduction;
    // The last pixel of a reduced image may cover fewer pixels than the others.
    const double top = (region_.top - image.top) * scale;
    const double left = (region_.left - image.left) * scale;
    return {.top = top,
            .left = left,
            .height = std::min(region_.height * scale, image.height - top),
            .width = std::min(region_.width * scale, image.width - left)};
  }

 private:
  RegionChooser& chooser_;
  Region region_;
  bool asked_ = false;
};

}  // namespace

Region middle_region(int height, int width, const ImageShape& shape) {
  const bool is_wide = int64_t{width} * shape.height >= int64_t{height} * shape.width;
  Region region{.height = height, .width = width};
  if (is_wide) {
    region.width = std::max(1, static_cast<int>(int64_t{height} * shape.width / shape.height));
  } else {
    region.height = std::max(1, static_cast<int>(int64_t{width} * shape.height / shape.width));
  }
  region.top = (height - region.height) / 2;
  region.left = (width - region.width) / 2;
  return region;
}

ImageShaper::ImageShaper(const ImageSet& images, const ImageShape& shape, bool resize)
    : images_(images), shape_(shape), resize_(resize) {
  const auto stored = images.stored_shape();
  stored_ = stored && stored->channels == shape.channels &&
            (resize || (stored->height == shape.height && stored->width == shape.width));
}

const uint8_t* ImageShaper::read(int64_t index, RegionChooser* cutter, Buffers& buffers) const {
  return read(index, shape_, cutter, buffers);
}

const uint8_t* ImageShaper::read(int64_t index, const ImageShape& shape, RegionChooser* cutter,
                                 Buffers& buffers) const {
  Middle middle(shape);
  Remembered region(cutter != nullptr ? *cutter : middle);
  Image& image = buffers.image;
  image.top = image.left = 0;
  image.reduction = 1;
  const uint8_t* pixels = nullptr;
  if (stored_) {
    const auto stored = images_.stored_shape();
    pixels = images_.stored_pixels(index);
    image.height = stored->height;
    image.width = stored->width;
  } else {
    DecodeRequest request{.channels = shape.channels};
    if (resize_) {
      request.min_side = std::min(shape.height, shape.width);
      request.region = &region;
    }
    const TraceSpan span(SpanKind::kData, "read");  // Contains "decode".
    images_.read(index, request, image);
    pixels = image.pixels.data();
  }
  if (!resize_) {
    check_shape(index, image);
    return pixels;
  }
  return fit({pixels, image.height, image.width, shape.channels}, region.box_in(image), shape,
             buffers);
}

const uint8_t* ImageShaper::fit(const PixelView& source, const Box& box, const ImageShape& shape,
                                Buffers& buffers) {
  if (source.height == shape.height && source.width == shape.width && box.top == 0 &&
      box.left == 0 && box.height == source.height && box.width == source.width) {
    return source.pixels;
  }
  const TraceSpan span(SpanKind::kData, "resize");
  buffers.resized.resize(static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
                         static_cast<size_t>(shape.channels));
  buffers.resizer.resize(source, box, shape.height, shape.width, buffers.resized.data());
  return buffers.resized.data();
}

void ImageShaper::check_shape(int64_t index, const Image& image) const {
  if (image.height == shape_.height && image.width == shape_.width) return;
  throw ShapeError(fmt::format(
      "{}: is {} x {} pixels (height x width) where the others are {} x {}; set data.image_size to "
      "bring all images to one size",
      images_.describe(index), image.height, image.width, shape_.height, shape_.width));
}

}  // namespace gallop::data
