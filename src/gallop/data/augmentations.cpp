#include "gallop/data/augmentations.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

// No run reaches this epoch, so its random numbers are free for draws made once for all epochs.
constexpr uint64_t kNoEpoch = 0xFFFFFFFFu;

// The number of positions of a part of this many pixels.
uint64_t places(int whole, int part) { return static_cast<uint64_t>(int64_t{whole} - part + 1); }

class RandomFlip final : public Augmentation {
 public:
  void plan(const SampleKey&, Philox& random, MovePlan& plan) const override {
    if (random.coin()) plan.mirror();
  }
};

class AlternatingFlip final : public Augmentation {
 public:
  void plan(const SampleKey& key, Philox&, MovePlan& plan) const override {
    Philox random(key.seed, Purpose::kAugment, kNoEpoch, static_cast<uint64_t>(key.index));
    if (random.coin() != (key.epoch % 2 == 1)) plan.mirror();
  }
};

class Crop final : public Augmentation {
 public:
  Crop(int padding, Border border) : padding_(padding), border_(border) {}

  void check(const ImageShape& shape) const override {
    const int height = shape.height, width = shape.width;
    // Reflection cannot pad by the full image size; edge and black could crop the image away.
    if (padding_ < std::min(height, width)) return;
    throw UsageError(fmt::format("random-crop: a padding of {} is too much for images of {} x {}",
                                 padding_, height, width));
  }

  void plan(const SampleKey&, Philox& random, MovePlan& plan) const override {
    const auto steps = static_cast<uint64_t>(2 * int64_t{padding_} + 1);
    const int rows = static_cast<int>(random.below(steps)) - padding_;
    const int columns = static_cast<int>(random.below(steps)) - padding_;
    plan.border = border_;
    plan.shift(rows, columns);
  }

 private:
  int padding_;
  Border border_;
};

class RandomResizedCrop final : public Augmentation {
 public:
  explicit RandomResizedCrop(const RandomResizedCropConfig& config) : config_(config) {}

  AugmentStage stage() const override { return AugmentStage::kCut; }

  Region cut(int height, int width, Philox& random) const override {
    const double area = static_cast<double>(height) * width;
    const double log_low = std::log(config_.ratio[0]), log_high = std::log(config_.ratio[1]);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double share = std::lerp(config_.scale[0], config_.scale[1], random.uniform());
      const double ratio = std::exp(std::lerp(log_low, log_high, random.uniform()));
      const auto w = static_cast<int>(std::lround(std::sqrt(area * share * ratio)));
      const auto h = static_cast<int>(std::lround(std::sqrt(area * share / ratio)));
      if (w < 1 || h < 1 || w > width || h > height) continue;
      const auto top = static_cast<int>(random.below(places(height, h)));
      const auto left = static_cast<int>(random.below(places(width, w)));
      return {.top = top, .left = left, .height = h, .width = w};
    }
    return middle(height, width);
  }

 private:
  // The largest centered crop with an allowed aspect ratio.
  Region middle(int height, int width) const {
    int h = height, w = width;
    const double ratio = static_cast<double>(width) / height;
    if (ratio < config_.ratio[0]) h = static_cast<int>(std::lround(width / config_.ratio[0]));
    if (ratio > config_.ratio[1]) w = static_cast<int>(std::lround(height * config_.ratio[1]));
    h = std::clamp(h, 1, height);
    w = std::clamp(w, 1, width);
    return {.top = (height - h) / 2, .left = (width - w) / 2, .height = h, .width = w};
  }

  RandomResizedCropConfig config_;
};

void check_range(const char* name, const std::vector<double>& range) {
  if (range.size() == 2 && range[0] > 0 && range[0] <= range[1]) return;
  throw UsageError(fmt::format(
      "random-resized-crop: {} must be two positive numbers, the smaller one first", name));
}

}  // namespace

void visit(config::Visitor& visitor, FlipConfig& config) {
  visitor.field({.name = "mode",
                 .help = "random: drawn for each sample and epoch; alternating: drawn once, then "
                         "mirrored in every other epoch",
                 .choices = {"random", "alternating"}},
                config.mode);
}

void visit(config::Visitor& visitor, CropConfig& config) {
  visitor.field({.name = "padding", .help = "pixels added on each side", .min = 0, .max = 1000},
                config.padding);
  visitor.field({.name = "mode",
                 .help = "padding mode: zero, reflect, or edge (repeats the outermost pixels)",
                 .choices = {"zero", "reflect", "edge"}},
                config.mode);
}

void visit(config::Visitor& visitor, RandomResizedCropConfig& config) {
  visitor.field({.name = "scale",
                 .help = "range of the cropped fraction of the image's area",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.scale);
  visitor.field({.name = "ratio",
                 .help = "range of the crop's aspect ratio (width / height)",
                 .min = 0,
                 .above_min = true},
                config.ratio);
}

std::unique_ptr<Augmentation> make_flip(const FlipConfig& config) {
  if (config.mode == "alternating") return std::make_unique<AlternatingFlip>();
  return std::make_unique<RandomFlip>();
}

std::unique_ptr<Augmentation> make_crop(const CropConfig& config) {
  const Border border = config.mode == "reflect" ? Border::kReflect
                        : config.mode == "edge"  ? Border::kEdge
                                                 : Border::kBlack;
  return std::make_unique<Crop>(static_cast<int>(config.padding), border);
}

std::unique_ptr<Augmentation> make_random_resized_crop(const RandomResizedCropConfig& config) {
  check_range("scale", config.scale);
  check_range("ratio", config.ratio);
  return std::make_unique<RandomResizedCrop>(config);
}

}  // namespace gallop::data
