#include "gallop/data/augmentations/erasing.h"

#include <cmath>

#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"

namespace gallop::data {
namespace {

std::vector<Erasing> erasings_of(const Augmentation& augmentation, const ImageShape& shape,
                                 int64_t draw) {
  std::vector<Erasing> erasings;
  Philox random = random_of_draw(draw);
  augmentation.draw(shape, random, erasings);
  return erasings;
}

std::string size_text(int height, int width) { return fmt::format("{} x {}", height, width); }

// The probability of each size, from a grid over the two uniform numbers of an attempt.
std::map<std::string, double> sizes_of_erasing(const RandomErasingConfig& config,
                                               const ImageShape& shape) {
  constexpr int kGrid = 1500;
  std::map<std::pair<int, int>, int64_t> accepted;
  int64_t all = 0;
  const double area = static_cast<double>(shape.height) * shape.width;
  for (int i = 0; i < kGrid; ++i) {
    const double part = std::lerp(config.scale[0], config.scale[1], (i + 0.5) / kGrid);
    for (int k = 0; k < kGrid; ++k) {
      const double ratio = std::exp(
          std::lerp(std::log(config.ratio[0]), std::log(config.ratio[1]), (k + 0.5) / kGrid));
      const int height = static_cast<int>(std::nearbyint(std::sqrt(area * part * ratio)));
      const int width = static_cast<int>(std::nearbyint(std::sqrt(area * part / ratio)));
      if (height >= shape.height || width >= shape.width) continue;
      ++accepted[{height, width}];
      ++all;
    }
  }
  // Ten attempts, of which the first that fits is taken.
  const double fits = static_cast<double>(all) / (double{kGrid} * kGrid);
  const double any = config.p * (1 - std::pow(1 - fits, 10));
  std::map<std::string, double> sizes{{"none", 1 - any}};
  for (const auto& [size, count] : accepted) {
    sizes[size_text(size.first, size.second)] =
        any * static_cast<double>(count) / static_cast<double>(all);
  }
  return sizes;
}

TEST(RandomErasing, DrawsAsTorchvisionDoes) {
  const ImageShape shape{12, 10, 3};
  const RandomErasingConfig config{.p = 0.7, .scale = {0.05, 0.9}, .ratio = {0.1, 4}};
  const auto augmentation = make_random_erasing(config);
  EXPECT_EQ(augmentation->stage(), AugmentStage::kErasing);
  std::map<std::string, int64_t> sizes, places;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto erasings = erasings_of(*augmentation, shape, i);
    if (erasings.empty()) {
      ++sizes["none"];
      continue;
    }
    const Region& region = erasings.at(0).region;
    ++sizes[size_text(region.height, region.width)];
    if (region.height == 6 && region.width == 6) {
      ++places[fmt::format("{} {}", region.top, region.left)];
    }
  }
  expect_distribution(sizes, sizes_of_erasing(config, shape), kDraws);
  std::map<std::string, double> equal;
  for (int top = 0; top <= 6; ++top) {
    for (int left = 0; left <= 4; ++left) equal[fmt::format("{} {}", top, left)] = 1.0 / 35;
  }
  int64_t all = 0;
  for (const auto& [place, count] : places) all += count;
  EXPECT_GT(all, 800);
  expect_distribution(places, equal, all);
}

TEST(RandomErasing, OverwritesWithANumber) {
  const auto augmentation = make_random_erasing({.p = 1, .value = "-1.5"});
  const ImageShape shape{9, 8, 3};
  for (int64_t i = 0; i < 20; ++i) {
    const Erasing erasing = erasings_of(*augmentation, shape, i).at(0);
    const auto& [top, left, height, width] = erasing.region;
    std::vector<float> image(9 * 8 * 3, 2);
    std::vector<c10::BFloat16> small(image.size(), c10::BFloat16(2.0F));
    erase(erasing, shape, c10::ScalarType::Float, image.data());
    erase(erasing, shape, c10::ScalarType::BFloat16, small.data());
    for (int y = 0; y < 9; ++y) {
      for (int x = 0; x < 8; ++x) {
        const bool inside = y >= top && y < top + height && x >= left && x < left + width;
        for (int c = 0; c < 3; ++c) {
          const auto at = static_cast<size_t>((y * 8 + x) * 3 + c);
          EXPECT_EQ(image[at], inside ? -1.5F : 2.0F);
          EXPECT_EQ(static_cast<float>(small[at]), image[at]);
        }
      }
    }
  }
}

TEST(RandomErasing, OverwritesWithNormalNumbers) {
  const auto augmentation =
      make_random_erasing({.p = 1, .scale = {0.5, 0.5}, .ratio = {1, 1}, .value = "random"});
  const ImageShape shape{300, 300, 3};
  const Erasing erasing = erasings_of(*augmentation, shape, 0).at(0);
  std::vector<float> image(300 * 300 * 3, 100), again = image;
  erase(erasing, shape, c10::ScalarType::Float, image.data());
  erase(erasing, shape, c10::ScalarType::Float, again.data());
  EXPECT_EQ(image, again);
  std::vector<double> values;
  for (const float value : image) {
    if (value != 100) values.push_back(std::erfc(-value / std::sqrt(2.0)) / 2);
  }
  EXPECT_EQ(values.size(), 212u * 212u * 3u);
  expect_distribution_function(values, [](double x) { return x; });
}

TEST(RandomErasing, RefusesRangesThatAreNone) {
  EXPECT_THROW(make_random_erasing({.scale = {0.3, 0.2}}), UsageError);
  EXPECT_THROW(make_random_erasing({.ratio = {1}}), UsageError);
}

TEST(Cutout, CentersSquaresAnywhere) {
  const ImageShape shape{6, 5, 3};
  const auto augmentation = make_cutout({.length = 0.8, .num_holes = 2});
  EXPECT_EQ(augmentation->stage(), AugmentStage::kErasing);
  std::map<std::string, int64_t> counts;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto erasings = erasings_of(*augmentation, shape, i);
    ASSERT_EQ(erasings.size(), 2u);
    const auto& [top, left, height, width] = erasings[1].region;
    EXPECT_EQ(erasings[1].value, 0);
    ++counts[fmt::format("{} {} {} {}", top, left, height, width)];
  }
  // Sides of 4 around each pixel, clipped.
  std::map<std::string, double> expected;
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 5; ++x) {
      const int top = std::max(y - 2, 0), left = std::max(x - 2, 0);
      expected[fmt::format("{} {} {} {}", top, left, std::min(y + 2, 6) - top,
                           std::min(x + 2, 5) - left)] += 1.0 / 30;
    }
  }
  expect_distribution(counts, expected, kDraws);
}

}  // namespace
}  // namespace gallop::data
