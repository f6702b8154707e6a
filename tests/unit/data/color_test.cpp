#include "gallop/data/augmentations/color.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"

namespace gallop::data {
namespace {

const ImageShape kShape{32, 32, 3};

TEST(ColorJitter, DrawsFactorsUniformlyAndOrdersEquallyOften) {
  const auto augmentation = make_color_jitter(
      {.brightness = {0.4}, .contrast = {1.5}, .saturation = {0.2, 0.9}, .hue = {0.1}});
  EXPECT_EQ(augmentation->stage(), AugmentStage::kPixels);
  std::map<std::string, int64_t> orders;
  std::vector<double> brightness, contrast, saturation, hue;
  for (int64_t i = 0; i < kDraws; ++i) {
    std::string order;
    for (const pixels::Operation& operation : drawn(*augmentation, kShape, i)) {
      order += std::to_string(operation.index());
      if (const auto* one = std::get_if<pixels::Brightness>(&operation)) {
        brightness.push_back((one->factor - 0.6) / 0.8);
      } else if (const auto* two = std::get_if<pixels::Contrast>(&operation)) {
        contrast.push_back(two->factor / 2.5);
      } else if (const auto* three = std::get_if<pixels::Saturation>(&operation)) {
        saturation.push_back((three->factor - 0.2) / 0.7);
      } else if (const auto* four = std::get_if<pixels::Hue>(&operation)) {
        hue.push_back((four->factor + 0.1) / 0.2);
      }
    }
    ++orders[order];
  }
  std::map<std::string, double> expected;
  for (const auto& [order, count] : orders) expected[order] = 1.0 / 24;
  ASSERT_EQ(expected.size(), 24u);
  expect_distribution(orders, expected, kDraws);
  for (const auto& fractions : {brightness, contrast, saturation, hue}) {
    EXPECT_EQ(fractions.size(), static_cast<size_t>(kDraws));
    expect_distribution_function(fractions, [](double x) { return x; });
  }
}

TEST(ColorJitter, LeavesOutWhatHasNoRange) {
  const auto augmentation = make_color_jitter({.contrast = {0.5}});
  const auto operations = drawn(*augmentation, {8, 8, 1}, 3);
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<pixels::Contrast>(operations[0]));
}

TEST(ColorJitter, RefusesRangesThatAreNone) {
  EXPECT_THROW(make_color_jitter({}), UsageError);
  EXPECT_THROW(make_color_jitter({.brightness = {2, 1}}), UsageError);
  EXPECT_THROW(make_color_jitter({.brightness = {-1, 1}}), UsageError);
  EXPECT_THROW(make_color_jitter({.hue = {0.6}}), UsageError);
  EXPECT_NO_THROW(make_color_jitter({.brightness = {0.1}})->check({8, 8, 1}));
  EXPECT_THROW(make_color_jitter({.hue = {0.1}})->check({8, 8, 1}), UsageError);
  EXPECT_THROW(make_color_jitter({.saturation = {0.1}})->check({8, 8, 1}), UsageError);
}

TEST(RandomGrayscale, DrawsWithItsProbability) {
  const auto augmentation = make_random_grayscale({.p = 0.2});
  std::map<std::string, int64_t> counts;
  for (int64_t i = 0; i < kDraws; ++i) {
    ++counts[drawn(*augmentation, kShape, i).empty() ? "color" : "gray"];
  }
  expect_distribution(counts, {{"gray", 0.2}, {"color", 0.8}}, kDraws);
  EXPECT_THROW(augmentation->check({8, 8, 1}), UsageError);
}

}  // namespace
}  // namespace gallop::data
