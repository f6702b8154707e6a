#include "gallop/data/png_writer.h"

#include <fmt/format.h>
#include <png.h>

#include "gallop/base/error.h"

namespace gallop::data {

std::string encode_png(const Image& image) {
  if (image.channels != 1 && image.channels != 3) {
    throw InternalError(fmt::format("an image of {} channels cannot be a PNG", image.channels));
  }
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.flags = PNG_IMAGE_FLAG_FAST;  // Larger files, but much faster.
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string content(bytes, '\0');
  if (png_image_write_to_memory(&png, content.data(), &bytes, /*convert_to_8_bit=*/0,
                                image.pixels.data(), /*row_stride=*/0, /*colormap=*/nullptr) == 0) {
    throw InternalError(fmt::format("libpng: {}", png.message));
  }
  content.resize(bytes);
  return content;
}

}  // namespace gallop::data
