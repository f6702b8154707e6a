#include "gallop/data/memory_images.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/channels.h"
#include "gallop/data/skips.h"
#include "gallop/data/split.h"

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

std::unique_ptr<ImageSet> with_valid_labels(MemoryImages::Content content,
                                            const std::function<std::string(int64_t)>& item,
                                            SkipPolicy& skips) {
  const auto classes = static_cast<int64_t>(content.class_names.size());
  const auto images = static_cast<int64_t>(content.labels.size());
  std::vector<int64_t> valid;
  for (int64_t i = 0; i < images; ++i) {
    int32_t& label = content.labels[static_cast<size_t>(i)];
    if (label >= 0 && label < classes) {
      valid.push_back(i);
      continue;
    }
    skips.add("invalid label", fmt::format("{} has label {}, but there are {} classes (0 to {})",
                                           item(i), label, classes, classes - 1));
    label = 0;
  }
  if (valid.empty()) {
    throw DataError(fmt::format("{}: none of {} labels is valid", item(0), format_count(images)));
  }
  auto all = std::make_unique<MemoryImages>(std::move(content));
  if (static_cast<int64_t>(valid.size()) == images) return all;
  return std::make_unique<SubsetImages>(std::move(all), std::move(valid));
}

}  // namespace gallop::data
