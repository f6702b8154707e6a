#include "gallop/app/batch_images.h"

#include <algorithm>
#include <cmath>

namespace gallop::app {

data::Image image_of(const at::Tensor& row, const data::Signature& inputs) {
  const at::Tensor plain = row.to(at::kFloat).cpu().permute({1, 2, 0}).contiguous();
  data::Image image;
  image.height = static_cast<int>(plain.size(0));
  image.width = static_cast<int>(plain.size(1));
  image.channels = static_cast<int>(plain.size(2));
  const auto channels = static_cast<size_t>(image.channels);
  const float* const values = plain.const_data_ptr<float>();
  image.pixels.resize(static_cast<size_t>(plain.numel()));
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const double value = values[i] * inputs.deviation[i % channels] + inputs.mean[i % channels];
    image.pixels[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  }
  return image;
}

}  // namespace gallop::app
