#include "gallop/data/augment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/data/augmentations.h"
#include "unit/base/error_of.h"

namespace gallop::data {
namespace {

// Pixels of one channel numbered from 1, so that 0 is black.
std::vector<uint8_t> numbered(int count) {
  std::vector<uint8_t> pixels(static_cast<size_t>(count));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i + 1);
  return pixels;
}

std::vector<int> moved(const MovePlan& plan, int channels = 1) {
  const auto source = numbered(plan.height * plan.width * channels);
  std::vector<uint8_t> out(source.size(), 99);
  move_pixels(plan, channels, source.data(), out.data());
  return {out.begin(), out.end()};
}

/// A reference implementation of a plan, one pixel after the other.
std::vector<int> moved_slowly(const MovePlan& plan, int channels) {
  const auto source = numbered(plan.height * plan.width * channels);
  const auto place = [&](int at, int size) {
    if (plan.border == Border::kEdge) return std::clamp(at, 0, size - 1);
    if (plan.border == Border::kReflect) return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
    return at < 0 || at >= size ? -1 : at;
  };
  std::vector<int> out;
  for (int y = 0; y < plan.height; ++y) {
    for (int x = 0; x < plan.width; ++x) {
      const int row = place(plan.top + y, plan.height);
      const int column = place(plan.left + plan.step * x, plan.width);
      for (int c = 0; c < channels; ++c) {
        const int at = (row * plan.width + column) * channels + c;
        out.push_back(row < 0 || column < 0 ? 0 : source[static_cast<size_t>(at)]);
      }
    }
  }
  return out;
}

TEST(MovePixels, Mirrors) {
  MovePlan plan{.height = 2, .width = 3};
  EXPECT_TRUE(plan.is_identity());
  plan.mirror();
  EXPECT_EQ(moved(plan), (std::vector<int>{3, 2, 1, 6, 5, 4}));
  plan.mirror();
  EXPECT_TRUE(plan.is_identity());
}

TEST(MovePixels, PadsInThreeWays) {
  MovePlan plan{.height = 3, .width = 3};
  plan.shift(-1, 2);
  EXPECT_EQ(moved(plan), (std::vector<int>{0, 0, 0, 3, 0, 0, 6, 0, 0}));
  plan.border = Border::kEdge;
  EXPECT_EQ(moved(plan), (std::vector<int>{3, 3, 3, 3, 3, 3, 6, 6, 6}));
  plan.border = Border::kReflect;
  EXPECT_EQ(moved(plan), (std::vector<int>{6, 5, 4, 3, 2, 1, 6, 5, 4}));
}

TEST(MovePixels, AddsUpInTheOrderOfTheList) {
  MovePlan shifted{.height = 1, .width = 4};
  shifted.shift(0, 1);
  EXPECT_EQ(moved(shifted), (std::vector<int>{2, 3, 4, 0}));
  shifted.mirror();
  EXPECT_EQ(moved(shifted), (std::vector<int>{0, 4, 3, 2}));
  MovePlan mirrored{.height = 1, .width = 4};
  mirrored.mirror();
  mirrored.shift(0, 1);
  EXPECT_EQ(moved(mirrored), (std::vector<int>{3, 2, 1, 0}));
}

TEST(MovePixels, DoesWhatThePlanSays) {
  for (const int width : {1, 2, 5, 6, 10, 11, 16, 17, 32}) {
    for (const Border border : {Border::kBlack, Border::kReflect, Border::kEdge}) {
      for (const int channels : {1, 3}) {
        for (int shift = 1 - width; shift < width; ++shift) {
          MovePlan plan{.height = 2, .width = width, .border = border};
          plan.shift(1, shift);
          EXPECT_EQ(moved(plan, channels), moved_slowly(plan, channels));
          plan.mirror();
          EXPECT_EQ(moved(plan, channels), moved_slowly(plan, channels)) << width << " " << shift;
        }
      }
    }
  }
}

MovePlan plan_of(const Augmentation& augmentation, int64_t epoch, int64_t index,
                 uint64_t seed = 1) {
  Philox random(seed, Purpose::kAugment, static_cast<uint64_t>(epoch),
                static_cast<uint64_t>(index));
  MovePlan plan{.height = 32, .width = 32};
  augmentation.plan({.seed = seed, .epoch = epoch, .index = index}, random, plan);
  return plan;
}

TEST(Flip, MirrorsHalfAtRandom) {
  const auto flip = make_flip({});
  int mirrored = 0, changed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    mirrored += plan_of(*flip, 0, i).step < 0;
    changed += plan_of(*flip, 0, i).step != plan_of(*flip, 1, i).step;
  }
  EXPECT_NEAR(mirrored, 500, 60);
  EXPECT_NEAR(changed, 500, 60);
}

TEST(Flip, AlternatesEveryEpoch) {
  const auto flip = make_flip({.mode = "alternating"});
  int mirrored = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const int first = plan_of(*flip, 0, i).step;
    mirrored += first < 0;
    EXPECT_EQ(plan_of(*flip, 1, i).step, -first);
    EXPECT_EQ(plan_of(*flip, 2, i).step, first);
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

TEST(Crop, ReachesEveryPlaceEquallyOften) {
  const auto crop = make_crop({.padding = 2, .mode = "edge"});
  int counts[5][5] = {};
  for (int64_t i = 0; i < 25000; ++i) {
    const MovePlan plan = plan_of(*crop, 0, i);
    EXPECT_EQ(plan.border, Border::kEdge);
    ASSERT_LE(std::max(std::abs(plan.top), std::abs(plan.left)), 2);
    ++counts[plan.top + 2][plan.left + 2];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(Crop, RefusesMorePaddingThanImage) {
  EXPECT_NO_THROW(make_crop({.padding = 4})->check({5, 5, 3}));
  const std::string error = error_of([] { make_crop({.padding = 5})->check({32, 5, 3}); });
  EXPECT_EQ(error, "random-crop: a padding of 5 is too much for images of 32 x 5");
}

TEST(RandomResizedCrop, KeepsToItsRanges) {
  const auto crop = make_random_resized_crop({.scale = {0.2, 0.5}});
  double area = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    Philox random(1, Purpose::kAugment, 0, i);
    const Region region = crop->cut(375, 500, random);
    ASSERT_GE(region.top, 0);
    ASSERT_GE(region.left, 0);
    ASSERT_LE(region.top + region.height, 375);
    ASSERT_LE(region.left + region.width, 500);
    const double ratio = double(region.width) / region.height;
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
    area += double(region.width) * region.height / (375 * 500);
  }
  EXPECT_NEAR(area / 2000, 0.35, 0.01);
}

TEST(RandomResizedCrop, TakesTheMiddleOfAStrip) {
  const auto crop = make_random_resized_crop({.scale = {1, 1}});
  Philox random(1, Purpose::kAugment, 0, 0);
  const Region region = crop->cut(30, 400, random);
  EXPECT_EQ(region.height, 30);
  EXPECT_EQ(region.width, 40);
  EXPECT_EQ(region.left, 180);
}

TEST(RandomResizedCrop, RefusesRangesThatAreNone) {
  EXPECT_THROW(make_random_resized_crop({.scale = {0.5}}), UsageError);
  EXPECT_THROW(make_random_resized_crop({.scale = {0.5, 0.2}}), UsageError);
  EXPECT_THROW(make_random_resized_crop({.ratio = {0, 1}}), UsageError);
}

// Runs are reproduced by later versions: all random choices stay as they are.
TEST(Augmentations, KeepTheirRandomNumbers) {
  const auto crop = make_crop({}), flip = make_flip({}), resized = make_random_resized_crop({});
  std::string drawn;
  for (int64_t i = 0; i < 4; ++i) {
    Philox random(7, Purpose::kAugment, 3, static_cast<uint64_t>(i));
    const Region region = resized->cut(100, 80, random);
    MovePlan plan{.height = 32, .width = 32};
    crop->plan({.seed = 7, .epoch = 3, .index = i}, random, plan);
    flip->plan({.seed = 7, .epoch = 3, .index = i}, random, plan);
    drawn += fmt::format("{} {} {} {}, {} {} {}\n", region.top, region.left, region.height,
                         region.width, plan.top, plan.left, plan.step);
  }
  EXPECT_EQ(drawn,
            "2 14 63 54, 4 -3 1\n26 10 53 68, -3 2 1\n5 0 90 75, -4 34 -1\n"
            "36 0 64 56, -2 3 1\n");
}

class AugmentationList : public testing::Test {
 protected:
  config::ComponentList list(const std::vector<const char*>& names) {
    config::ComponentList result(registry);
    for (const char* name : names) result.items.emplace_back(registry, name);
    return result;
  }
  AugmentationRegistry registry = built_in_augmentations();
};

TEST_F(AugmentationList, IsBuiltInOrder) {
  const auto built =
      build_augmentations(registry, list({"random-resized-crop", "random-horizontal-flip"}));
  ASSERT_EQ(built.size(), 2u);
  EXPECT_TRUE(built[0]->cuts());
  EXPECT_FALSE(built[1]->cuts());
}

TEST_F(AugmentationList, RefusesWhatCannotWorkTogether) {
  EXPECT_THROW(
      build_augmentations(registry, list({"random-horizontal-flip", "random-resized-crop"})),
      UsageError);
  EXPECT_THROW(
      build_augmentations(registry, list({"random-crop", "random-horizontal-flip", "random-crop"})),
      UsageError);
  EXPECT_NO_THROW(build_augmentations(
      registry, list({"random-resized-crop", "random-horizontal-flip", "random-grayscale",
                      "rand-augment", "cutout", "random-erasing"})));
  try {
    build_augmentations(registry, list({"random-crop", "rand-augment", "random-horizontal-flip"}));
    FAIL() << "a flip after the policy";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "augmentation 'random-horizontal-flip' moves whole pixels and must come before "
                 "'rand-augment', which changes values of pixels");
  }
  EXPECT_THROW(build_augmentations(registry, list({"random-erasing", "rand-augment"})), UsageError);
}

}  // namespace
}  // namespace gallop::data
