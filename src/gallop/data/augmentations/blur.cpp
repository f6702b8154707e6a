#include "gallop/data/augmentations/blur.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr int64_t kMaxKernel = 255;

class GaussianBlur final : public Augmentation {
 public:
  explicit GaussianBlur(const GaussianBlurConfig& config) {
    const auto& size = config.kernel_size;
    if (size.empty() || size.size() > 2) {
      throw UsageError(
          "gaussian-blur needs kernel_size, one odd number or width and height, as in "
          "kernel_size: 5");
    }
    for (const int64_t side : size) {
      if (side % 2 == 1) continue;
      throw UsageError(fmt::format("gaussian-blur: kernel_size must be odd, and {} is not", side));
    }
    width_ = static_cast<int>(size.front());
    height_ = static_cast<int>(size.back());
    const auto& sigma = config.sigma;
    if (sigma.empty() || sigma.size() > 2 || sigma.front() > sigma.back()) {
      throw UsageError("gaussian-blur: sigma must be one number or two, the smaller one first");
    }
    least_ = sigma.front();
    most_ = sigma.back();
  }

  AugmentStage stage() const override { return AugmentStage::kPixels; }

  // Borders are mirrored once.
  void check(const ImageShape& shape) const override {
    if (width_ / 2 < shape.width && height_ / 2 < shape.height) return;
    throw UsageError(fmt::format(
        "gaussian-blur: half of a kernel of {} x {} must be smaller than the image of {} x {}",
        width_, height_, shape.width, shape.height));
  }

  void draw(const ImageShape&, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const double sigma = draw_uniform(random, least_, most_);
    operations.emplace_back(pixels::GaussianBlur{
        .kernel_width = width_, .kernel_height = height_, .sigma_x = sigma, .sigma_y = sigma});
  }
  using Augmentation::draw;

 private:
  int width_ = 1, height_ = 1;
  double least_ = 0, most_ = 0;
};

}  // namespace

void visit(config::Visitor& visitor, GaussianBlurConfig& config) {
  visitor.field({.name = "kernel_size",
                 .help = "size of the kernel in pixels: one odd number, or width and height",
                 .min = 1,
                 .max = kMaxKernel,
                 .or_item = true},
                config.kernel_size);
  visitor.field({.name = "sigma",
                 .help = "range of the standard deviation in pixels, or one number",
                 .min = 0,
                 .above_min = true,
                 .or_item = true},
                config.sigma);
}

std::unique_ptr<Augmentation> make_gaussian_blur(const GaussianBlurConfig& config) {
  return std::make_unique<GaussianBlur>(config);
}

}  // namespace gallop::data
