#include "gallop/data/augmentations/color.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations/warps.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

void require_color(const char* augmentation, const ImageShape& shape) {
  if (shape.channels == 3) return;
  throw UsageError(fmt::format("{} is for color images, and these are gray", augmentation));
}

class ColorJitter final : public Augmentation {
 public:
  explicit ColorJitter(const ColorJitterConfig& config)
      : brightness_(factors("brightness", config.brightness)),
        contrast_(factors("contrast", config.contrast)),
        saturation_(factors("saturation", config.saturation)) {
    if (!config.hue.empty()) hue_ = range_of(kName, "hue", config.hue);
    if (!hue_.empty() && (hue_[0] < -0.5 || hue_[1] > 0.5)) {
      throw UsageError("color-jitter: hue must be within -0.5 and 0.5");
    }
    if (brightness_.empty() && contrast_.empty() && saturation_.empty() && hue_.empty()) {
      throw UsageError(
          "color-jitter needs a range for brightness, contrast, saturation or hue, as in "
          "brightness: 0.4");
    }
  }

  AugmentStage stage() const override { return AugmentStage::kPixels; }
  void check(const ImageShape& shape) const override {
    if (!hue_.empty()) require_color("color-jitter with hue", shape);
    if (!saturation_.empty()) require_color("color-jitter with saturation", shape);
  }

  void draw(const ImageShape&, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    std::array<std::optional<pixels::Operation>, 4> drawn;
    const std::array<size_t, 4> order = permutation(random);
    if (!brightness_.empty()) drawn[0] = pixels::Brightness{factor(random, brightness_)};
    if (!contrast_.empty()) drawn[1] = pixels::Contrast{factor(random, contrast_)};
    if (!saturation_.empty()) drawn[2] = pixels::Saturation{factor(random, saturation_)};
    if (!hue_.empty()) drawn[3] = pixels::Hue{factor(random, hue_)};
    for (const size_t i : order) {
      if (drawn[i]) operations.push_back(std::move(*drawn[i]));
    }
  }
  using Augmentation::draw;

 private:
  static constexpr const char* kName = "color-jitter";

  static std::vector<double> factors(const char* option, const std::vector<double>& value) {
    if (value.empty()) return {};
    std::vector<double> range = range_of(kName, option, value, 1);
    if (value.size() == 1) range[0] = std::max(range[0], 0.0);
    if (range[0] >= 0) return range;
    throw UsageError(fmt::format("{}: {} must not be negative", kName, option));
  }

  static double factor(Philox& random, const std::vector<double>& range) {
    return draw_uniform(random, range[0], range[1]);
  }

  static std::array<size_t, 4> permutation(Philox& random) {
    std::array<size_t, 4> order{0, 1, 2, 3};
    for (size_t i = 0; i < 3; ++i) std::swap(order[i], order[i + random.below(4 - i)]);
    return order;
  }

  std::vector<double> brightness_, contrast_, saturation_, hue_;
};

class RandomGrayscale final : public Augmentation {
 public:
  explicit RandomGrayscale(const RandomGrayscaleConfig& config) : config_(config) {}

  AugmentStage stage() const override { return AugmentStage::kPixels; }
  void check(const ImageShape& shape) const override { require_color("random-grayscale", shape); }

  void draw(const ImageShape&, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    if (random.uniform() < config_.p) operations.emplace_back(pixels::Grayscale{});
  }
  using Augmentation::draw;

 private:
  RandomGrayscaleConfig config_;
};

}  // namespace

void visit(config::Visitor& visitor, ColorJitterConfig& config) {
  for (auto& [name, value] :
       {std::pair("brightness", &config.brightness), std::pair("contrast", &config.contrast),
        std::pair("saturation", &config.saturation)}) {
    visitor.field({.name = name,
                   .help = "range of the factor; one number v is max(0, 1 - v) to 1 + v",
                   .min = 0,
                   .or_item = true},
                  *value);
  }
  visitor.field({.name = "hue",
                 .help = "range of the change of hue in whole turns; one number v is -v to v",
                 .min = -0.5,
                 .max = 0.5,
                 .or_item = true},
                config.hue);
}

void visit(config::Visitor& visitor, RandomGrayscaleConfig& config) {
  visitor.field({.name = "p", .help = "probability of transforming an image", .min = 0, .max = 1},
                config.p);
}

std::unique_ptr<Augmentation> make_color_jitter(const ColorJitterConfig& config) {
  return std::make_unique<ColorJitter>(config);
}

std::unique_ptr<Augmentation> make_random_grayscale(const RandomGrayscaleConfig& config) {
  return std::make_unique<RandomGrayscale>(config);
}

}  // namespace gallop::data
