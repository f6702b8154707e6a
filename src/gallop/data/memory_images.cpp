#include "gallop/data/memory_images.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/channels.h"

namespace gallop::data {

namespace {

size_t bytes_of(const ImageShape& shape) {
  return static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
         static_cast<size_t>(shape.channels);
}

}  // namespace

MemoryImages::MemoryImages(Content content)
    : content_(std::move(content)), image_bytes_(bytes_of(content_.shape)) {}

const uint8_t* MemoryImages::stored_pixels(int64_t index) const {
  return content_.pixels.data() + static_cast<size_t>(index) * image_bytes_;
}

void MemoryImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  const ImageShape& shape = content_.shape;
  const int channels = request.channels == 0 ? shape.channels : request.channels;
  const int64_t pixels = int64_t{shape.height} * shape.width;
  set_size(image, shape.height, shape.width, channels);
  convert_channels(stored_pixels(index), shape.channels, image.pixels.data(), channels, pixels);
}

void check_labels(const std::vector<int32_t>& labels, int64_t classes, const std::string& items) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw DataError(fmt::format("{}: item {} has label {}, but there are {} classes (0 to {})",
                                items, i, labels[i], classes, classes - 1));
  }
}

}  // namespace gallop::data
