#include "gallop/data/augmentations/warps.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr const char* kRotation = "random-rotation";
constexpr const char* kAffine = "random-affine";

void check_size(const char* augmentation, const char* option, const std::vector<double>& value) {
  if (value.empty() || value.size() == 2) return;
  throw UsageError(
      fmt::format("{}: {} must be two numbers, not {}", augmentation, option, value.size()));
}

class RandomRotation final : public Augmentation {
 public:
  explicit RandomRotation(const RandomRotationConfig& config)
      : config_(config),
        degrees_(range_of(kRotation, "degrees", config.degrees)),
        interpolation_(interpolation_of(config.interpolation)) {
    check_size(kRotation, "center", config.center);
  }

  AugmentStage stage() const override { return AugmentStage::kPixels; }
  void check(const ImageShape& shape) const override { check_fill(kRotation, config_.fill, shape); }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    const double angle = draw_uniform(random, degrees_[0], degrees_[1]);
    if (config_.center.empty()) {
      operations.push_back(
          pixels::rotation(angle, shape.height, shape.width, interpolation_, config_.fill));
      return;
    }
    operations.push_back(pixels::Warp{
        .matrix = pixels::affine_matrix(
            {.angle = -angle, .has_center = true, .center = {config_.center[0], config_.center[1]}},
            shape.height, shape.width),
        .interpolation = interpolation_,
        .fill = config_.fill});
  }
  using Augmentation::draw;

 private:
  RandomRotationConfig config_;
  std::vector<double> degrees_;
  pixels::Interpolation interpolation_;
};

class RandomAffine final : public Augmentation {
 public:
  explicit RandomAffine(const RandomAffineConfig& config)
      : config_(config),
        degrees_(range_of(kAffine, "degrees", config.degrees)),
        interpolation_(interpolation_of(config.interpolation)) {
    for (const auto& [option, value] :
         {std::pair("translate", config.translate), std::pair("center", config.center)}) {
      check_size(kAffine, option, value);
    }
    if (!config.scale.empty()) {
      check_size(kAffine, "scale", config.scale);
      range_of(kAffine, "scale", config.scale);
    }
    set_shear(config.shear);
  }

  AugmentStage stage() const override { return AugmentStage::kPixels; }
  void check(const ImageShape& shape) const override { check_fill(kAffine, config_.fill, shape); }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    pixels::AffineParameters affine{.angle = draw_uniform(random, degrees_[0], degrees_[1])};
    if (!config_.translate.empty()) {
      const double most_x = config_.translate[0] * shape.width;
      const double most_y = config_.translate[1] * shape.height;
      affine.translate[0] = std::nearbyint(draw_uniform(random, -most_x, most_x));
      affine.translate[1] = std::nearbyint(draw_uniform(random, -most_y, most_y));
    }
    if (!config_.scale.empty()) {
      affine.scale = draw_uniform(random, config_.scale[0], config_.scale[1]);
    }
    if (!shear_x_.empty()) affine.shear[0] = draw_uniform(random, shear_x_[0], shear_x_[1]);
    if (!shear_y_.empty()) affine.shear[1] = draw_uniform(random, shear_y_[0], shear_y_[1]);
    if (!config_.center.empty()) {
      affine.has_center = true;
      affine.center = {config_.center[0], config_.center[1]};
    }
    operations.push_back(
        pixels::Warp{.matrix = pixels::affine_matrix(affine, shape.height, shape.width),
                     .interpolation = interpolation_,
                     .fill = config_.fill});
  }
  using Augmentation::draw;

 private:
  void set_shear(const std::vector<double>& shear) {
    if (shear.empty()) return;
    if (shear.size() != 4) {
      shear_x_ = range_of(kAffine, "shear", shear);
      return;
    }
    shear_x_ = range_of(kAffine, "shear", {shear[0], shear[1]});
    shear_y_ = range_of(kAffine, "shear", {shear[2], shear[3]});
  }

  RandomAffineConfig config_;
  std::vector<double> degrees_, shear_x_, shear_y_;
  pixels::Interpolation interpolation_;
};

class RandomPerspective final : public Augmentation {
 public:
  explicit RandomPerspective(const RandomPerspectiveConfig& config)
      : config_(config), interpolation_(interpolation_of(config.interpolation)) {}

  AugmentStage stage() const override { return AugmentStage::kPixels; }
  void check(const ImageShape& shape) const override {
    check_fill("random-perspective", config_.fill, shape);
  }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<pixels::Operation>& operations) const override {
    if (random.uniform() >= config_.p) return;
    // How far each corner moves along an axis, in whole pixels.
    const auto inwards = [&](int size) {
      const int half = size / 2;
      const auto bound = static_cast<uint64_t>(config_.distortion_scale * half) + 1;
      return static_cast<int>(random.below(bound));
    };
    std::array<pixels::Point, 4> corners{};
    for (size_t i = 0; i < 4; ++i) {
      const bool is_right = i == 1 || i == 2, is_bottom = i >= 2;
      const int x = inwards(shape.width), y = inwards(shape.height);
      corners[i] = {is_right ? shape.width - 1 - x : x, is_bottom ? shape.height - 1 - y : y};
    }
    // Images with a side of one pixel have no perspective.
    const auto found = pixels::perspective_coefficients(corners, shape.height, shape.width);
    if (!found) return;
    operations.push_back(pixels::Perspective{
        .coefficients = *found, .interpolation = interpolation_, .fill = config_.fill});
  }
  using Augmentation::draw;

 private:
  RandomPerspectiveConfig config_;
  pixels::Interpolation interpolation_;
};

void visit_center(config::Visitor& visitor, std::vector<double>& center) {
  visitor.field({.name = "center",
                 .help = "center of the rotation [x, y] in pixels from the top left; none: the "
                         "image's center"},
                center);
}

void visit_degrees(config::Visitor& visitor, std::vector<double>& degrees) {
  visitor.field({.name = "degrees",
                 .help = "range of angles in degrees; one number d is -d to d",
                 .or_item = true},
                degrees);
}

}  // namespace

void visit_warp(config::Visitor& visitor, std::string& interpolation, std::vector<double>& fill) {
  visitor.field({.name = "interpolation",
                 .help = "interpolation of pixels",
                 .choices = {"nearest", "bilinear"}},
                interpolation);
  visit_fill(
      visitor, fill,
      "value outside the image (0 to 255), one or one per channel; []: black, where bilinear "
      "interpolation includes it");
}

void visit_fill(config::Visitor& visitor, std::vector<double>& fill, const char* help) {
  visitor.field({.name = "fill", .help = help, .min = 0, .max = 255, .or_item = true}, fill);
}

pixels::Interpolation interpolation_of(const std::string& name) {
  return name == "bilinear" ? pixels::Interpolation::kBilinear : pixels::Interpolation::kNearest;
}

void check_fill(const char* augmentation, const std::vector<double>& fill,
                const ImageShape& shape) {
  if (fill.size() <= 1 || static_cast<int>(fill.size()) == shape.channels) return;
  throw UsageError(fmt::format("{}: fill has {} values for images of {} channel{}", augmentation,
                               fill.size(), shape.channels, shape.channels == 1 ? "" : "s"));
}

std::vector<double> range_of(const char* augmentation, const char* option,
                             const std::vector<double>& value, double center) {
  if (value.size() == 1 && value[0] >= 0) return {center - value[0], center + value[0]};
  if (value.size() == 2 && value[0] <= value[1]) return value;
  throw UsageError(
      fmt::format("{}: {} must be one number from 0 on, or two numbers, the smaller one first",
                  augmentation, option));
}

void visit(config::Visitor& visitor, RandomRotationConfig& config) {
  visit_degrees(visitor, config.degrees);
  visit_warp(visitor, config.interpolation, config.fill);
  visit_center(visitor, config.center);
}

void visit(config::Visitor& visitor, RandomAffineConfig& config) {
  visit_degrees(visitor, config.degrees);
  visitor.field({.name = "translate",
                 .help = "largest translations [x, y] as fractions of width and height",
                 .min = 0,
                 .max = 1},
                config.translate);
  visitor.field(
      {.name = "scale", .help = "range of the scaling factor", .min = 0, .above_min = true},
      config.scale);
  visitor.field({.name = "shear",
                 .help = "range of x-shears in degrees, one number s for -s to s, or two ranges "
                         "[x, x, y, y]",
                 .or_item = true},
                config.shear);
  visit_warp(visitor, config.interpolation, config.fill);
  visit_center(visitor, config.center);
}

std::unique_ptr<Augmentation> make_random_rotation(const RandomRotationConfig& config) {
  return std::make_unique<RandomRotation>(config);
}

void visit(config::Visitor& visitor, RandomPerspectiveConfig& config) {
  visitor.field({.name = "distortion_scale",
                 .help = "how far corners move at most, as a fraction of half the side",
                 .min = 0,
                 .max = 1},
                config.distortion_scale);
  visitor.field({.name = "p", .help = "probability of transforming an image", .min = 0, .max = 1},
                config.p);
  visit_warp(visitor, config.interpolation, config.fill);
}

std::unique_ptr<Augmentation> make_random_perspective(const RandomPerspectiveConfig& config) {
  return std::make_unique<RandomPerspective>(config);
}

std::unique_ptr<Augmentation> make_random_affine(const RandomAffineConfig& config) {
  return std::make_unique<RandomAffine>(config);
}

}  // namespace gallop::data
