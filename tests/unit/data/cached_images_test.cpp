#include "gallop/data/cached_images.h"

#include <thread>

#include <gtest/gtest.h>

#include "unit/data/fake_images.h"

namespace gallop::data {
namespace {

TEST(CachedImages, DecodesEachImageOnce) {
  const FakeImages images(40, {6, 7, 3});
  const CachedImages cached(images, {6, 7, 3}, false);
  EXPECT_EQ(images.reads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < 40; ++i) {
        const uint8_t* pixels = cached.stored_pixels(i);
        ASSERT_EQ(pixels[(2 * 7 + 5) * 3 + 1], FakeImages::pixel(i, 2, 5, 1));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(images.reads, 40);
  EXPECT_EQ(cached.label(4), 1);
  EXPECT_EQ(cached.describe(4), "item 4");
}

TEST(CachedImages, KeepsResizedImages) {
  FakeImages images(3, {20, 30, 3});
  images.other_height = {1};
  const CachedImages cached(images, {8, 8, 3}, true);
  EXPECT_EQ(cached.stored_shape(), (ImageShape{8, 8, 3}));
  Image image;
  cached.read(1, {.channels = 3}, image);
  EXPECT_EQ(image.pixels.size(), 192u);
  EXPECT_EQ(image.pixels[100], cached.stored_pixels(1)[100]);
}

TEST(CachedImages, ReadsOtherChannelsFromTheOriginal) {
  const FakeImages images(3, {4, 4, 3});
  const CachedImages cached(images, {4, 4, 3}, false);
  Image image;
  cached.read(1, {.channels = 1}, image);
  EXPECT_EQ(image.pixels.size(), 16u);
}

TEST(CachedImages, ThrowsForADamagedImageEveryTime) {
  FakeImages images(3, {4, 4, 3});
  images.damaged = {1};
  images.other_height = {2};
  const CachedImages cached(images, {4, 4, 3}, false);
  EXPECT_THROW(cached.stored_pixels(1), DataError);
  EXPECT_THROW(cached.stored_pixels(1), DataError);
  EXPECT_THROW(cached.stored_pixels(2), ShapeError);
  EXPECT_NO_THROW(cached.stored_pixels(0));
}

TEST(CachedImages, KnowsItsSize) {
  EXPECT_EQ(CachedImages::bytes_needed(10, {4, 5, 3}), 600);
  EXPECT_FALSE(CachedImages::bytes_needed(int64_t{1} << 50, {1 << 14, 1 << 14, 3}));
  class Endless final : public FakeImages {
   public:
    Endless() : FakeImages(1000, {1 << 28, 1 << 28, 3}) {}
  };
  EXPECT_THROW(CachedImages(Endless(), {1 << 28, 1 << 28, 3}, false), DeviceError);
}

}  // namespace
}  // namespace gallop::data
