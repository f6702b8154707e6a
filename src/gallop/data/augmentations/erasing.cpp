#include "gallop/data/augmentations/erasing.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <c10/util/BFloat16.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations/warps.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

constexpr const char* kName = "random-erasing";

std::optional<float> number_of(const std::string& text) {
  float number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

class RandomErasing final : public Augmentation {
 public:
  explicit RandomErasing(const RandomErasingConfig& config) : config_(config) {
    for (const auto& [option, range] :
         {std::pair("scale", config.scale), std::pair("ratio", config.ratio)}) {
      if (range.size() == 2 && range[0] <= range[1]) continue;
      throw UsageError(
          fmt::format("{}: {} must be two numbers, the smaller one first", kName, option));
    }
    if (config.value != "random") value_ = number_of(config.value);
    low_ = std::log(static_cast<float>(config.ratio[0]));
    high_ = std::log(static_cast<float>(config.ratio[1]));
  }

  AugmentStage stage() const override { return AugmentStage::kErasing; }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<Erasing>& erasings) const override {
    if (random.uniform() >= config_.p) return;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = static_cast<double>(shape.height) * shape.width *
                          draw_uniform(random, config_.scale[0], config_.scale[1]);
      const double ratio = std::exp(draw_uniform(random, low_, high_));
      const int height = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
      const int width = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
      if (height >= shape.height || width >= shape.width) continue;
      const auto place = [&](int whole, int part) {
        return static_cast<int>(random.below(static_cast<uint64_t>(int64_t{whole} - part + 1)));
      };
      Erasing erasing{.region = {.height = height, .width = width}};
      erasing.region.top = place(shape.height, height);
      erasing.region.left = place(shape.width, width);
      if (value_) {
        erasing.value = *value_;
      } else {
        erasing.noise_seed = random.next_u64();
      }
      erasings.push_back(erasing);
      return;
    }
  }
  using Augmentation::draw;

 private:
  RandomErasingConfig config_;
  std::optional<float> value_;
  float low_, high_;
};

class Cutout final : public Augmentation {
 public:
  explicit Cutout(const CutoutConfig& config) : config_(config) {}

  AugmentStage stage() const override { return AugmentStage::kErasing; }

  void draw(const ImageShape& shape, Philox& random,
            std::vector<Erasing>& erasings) const override {
    const int half = static_cast<int>(config_.length * std::min(shape.height, shape.width)) / 2;
    for (int64_t i = 0; i < config_.num_holes; ++i) {
      const int y = static_cast<int>(random.below(static_cast<uint64_t>(shape.height)));
      const int x = static_cast<int>(random.below(static_cast<uint64_t>(shape.width)));
      const int top = std::max(y - half, 0), left = std::max(x - half, 0);
      erasings.push_back({.region = {.top = top,
                                     .left = left,
                                     .height = std::min(y + half, shape.height) - top,
                                     .width = std::min(x + half, shape.width) - left}});
    }
  }
  using Augmentation::draw;

 private:
  CutoutConfig config_;
};

template <typename T>
void erase_values(const Erasing& erasing, const ImageShape& shape, T* image) {
  const auto& [top, left, height, width] = erasing.region;
  const size_t row = static_cast<size_t>(width) * static_cast<size_t>(shape.channels);
  std::vector<float> noise;
  if (erasing.noise_seed) {
    noise.resize(row * static_cast<size_t>(height));
    Philox random(*erasing.noise_seed, Purpose::kErasingNoise, 0, 0);
    draw_normal(random, 0, 1, noise);
  }
  for (int y = 0; y < height; ++y) {
    T* const out = image + (int64_t{top + y} * shape.width + left) * shape.channels;
    if (noise.empty()) {
      std::fill_n(out, row, static_cast<T>(erasing.value));
      continue;
    }
    const float* const from = &noise[row * static_cast<size_t>(y)];
    for (size_t i = 0; i < row; ++i) out[i] = static_cast<T>(from[i]);
  }
}

}  // namespace

void erase(const Erasing& erasing, const ImageShape& shape, c10::ScalarType dtype, void* image) {
  if (erasing.region.height <= 0 || erasing.region.width <= 0) return;
  if (dtype == c10::ScalarType::BFloat16) {
    erase_values(erasing, shape, static_cast<c10::BFloat16*>(image));
  } else {
    erase_values(erasing, shape, static_cast<float*>(image));
  }
}

void visit(config::Visitor& visitor, RandomErasingConfig& config) {
  visitor.field({.name = "p", .help = "probability of transforming an image", .min = 0, .max = 1},
                config.p);
  visitor.field({.name = "scale",
                 .help = "range of the erased fraction of the image's area",
                 .min = 0,
                 .max = 1},
                config.scale);
  visitor.field({.name = "ratio",
                 .help = "range of the rectangle's aspect ratio (height / width)",
                 .min = 0,
                 .above_min = true},
                config.ratio);
  visitor.field({.name = "value",
                 .help = "new value of the normalized pixels, 0 is the mean of the data; random: "
                         "normal numbers",
                 .check = [](const std::string& text) -> std::string {
                   return text == "random" || number_of(text) ? "" : "must be a number or random";
                 }},
                config.value);
}

void visit(config::Visitor& visitor, CutoutConfig& config) {
  visitor.field({.name = "length",
                 .help = "side of the squares as a fraction of the image's shorter side",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.length);
  visitor.field({.name = "num_holes", .help = "number of squares", .min = 1, .max = 1000},
                config.num_holes);
}

std::unique_ptr<Augmentation> make_random_erasing(const RandomErasingConfig& config) {
  return std::make_unique<RandomErasing>(config);
}

std::unique_ptr<Augmentation> make_cutout(const CutoutConfig& config) {
  return std::make_unique<Cutout>(config);
}

}  // namespace gallop::data
