#include "gallop/base/error.h"
#include "gallop/data/pixels/gaussian_kernel.h"
#include "gallop/data/pixels/pixel_editor.h"
#include "gallop/data/pixels/pixel_loops.h"

namespace gallop::data::pixels {

namespace {

// Mirrored at the outermost pixel, which is not repeated.
int mirrored(int at, int size) {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace

void PixelEditor::add(const GaussianBlur& blur) {
  const int margin_x = blur.kernel_width / 2, margin_y = blur.kernel_height / 2;
  if (margin_x >= shape_.width || margin_y >= shape_.height) {
    throw InternalError("a blur by a kernel twice as large as the image");
  }
  apply_tables();
  const std::vector<float> kernel = gaussian_kernel(blur);
  const auto channels = static_cast<size_t>(shape_.channels);
  const auto width = static_cast<size_t>(shape_.width);
  const size_t stride = (width + 2 * static_cast<size_t>(margin_x)) * channels;
  const int rows = shape_.height + 2 * margin_y;
  floats_.resize(static_cast<size_t>(rows) * stride + kBlurSlack);
  float* to = floats_.data();
  for (int y = 0; y < rows; ++y) {
    const auto from_y = static_cast<size_t>(mirrored(y - margin_y, shape_.height));
    const uint8_t* const row = pixels_ + from_y * width * channels;
    for (int x = 0; x < shape_.width + 2 * margin_x; ++x, to += channels) {
      const auto from_x = static_cast<size_t>(mirrored(x - margin_x, shape_.width));
      for (size_t c = 0; c < channels; ++c) to[c] = row[from_x * channels + c];
    }
  }
  static const PixelLoops kLoops = best_pixel_loops();
  uint8_t* const out = other_buffer();
  for (size_t y = 0; y < static_cast<size_t>(shape_.height); ++y) {
    kLoops.blur(floats_.data() + y * stride, static_cast<int64_t>(stride), kernel.data(),
                blur.kernel_height, blur.kernel_width, shape_.channels,
                static_cast<int64_t>(width * channels), out + y * width * channels);
  }
  set_pixels(out);
}

}  // namespace gallop::data::pixels
