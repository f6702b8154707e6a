#include "gallop/data/image_summary.h"

#include <gtest/gtest.h>

#include "gallop/data/split.h"
#include "unit/data/fake_images.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

TEST(ImageSummary, CountsTheWholeSetForAnyNumberOfThreads) {
  FakeImages images(5'000, {8, 9, 1});
  images.damaged = {0, 1, 4'000};
  images.other_height = {2'500, 4'998};
  images.other_channels = {3'000, 3'001, 4'999};
  images.turned = {17};
  const ImageSummary wanted{.images = 5'000,
                            .gray = 4'994,
                            .color = 3,
                            .unreadable = 3,
                            .turned = 1,
                            .other_size = 2,
                            .height = 8,
                            .width = 9,
                            .first_color = 3'000,
                            .first_unreadable = 0,
                            .first_other_size = 2'500};
  for (const int threads : {1, 2, 5}) EXPECT_EQ(summarize_images(images, threads), wanted);
  EXPECT_EQ(images.reads, 0) << "headers are enough";
}

TEST(ImageSummary, NeedsNoHeadersOfImagesInMemory) {
  const FakeStoredImages images(7, {8, 9, 3});
  const ImageSummary summary = summarize_images(images, 2);
  EXPECT_EQ(summary.color, 7);
  EXPECT_EQ(summary.height, 8);
  EXPECT_EQ(summary.first_color, 0);
}

TEST(ImageSummary, OfNothingOrOnlyDamageHasNoSize) {
  EXPECT_EQ(summarize_images(FakeImages(0, {8, 9, 1}), 2).height, 0);
  FakeImages images(2, {8, 9, 1});
  images.damaged = {0, 1};
  EXPECT_EQ(summarize_images(images, 2).height, 0);
  EXPECT_EQ(summarize_images(images, 2).unreadable, 2);
}

TEST(ImageSummary, IsCachedUntilAFileChanges) {
  const TestFolder folder;
  const SummaryCache cache{.folder = folder.path(), .min_images = 3};
  FakeImages images(3, {8, 9, 1});
  const auto colors = [&] { return cached_summary(images, 2, cache).color; };
  EXPECT_EQ(colors(), 0);
  images.other_channels = {1};
  EXPECT_EQ(colors(), 1) << "images without an identity are not cached";
  images.name = "some";
  EXPECT_EQ(colors(), 1);
  images.other_channels = {1, 2};
  EXPECT_EQ(colors(), 1) << "from the cache";
  images.state = 1;
  EXPECT_EQ(colors(), 2) << "a stamp has changed";
  images.name = "other";
  images.other_channels = {};
  EXPECT_EQ(colors(), 0);

  const fs::path entry = fs::directory_iterator(folder.path() / "images")->path();
  for (const auto& one : fs::directory_iterator(folder.path() / "images")) {
    std::string damaged = read_file(one.path());
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    write_file_atomically(one.path(), damaged);
  }
  images.other_channels = {0, 1, 2};
  EXPECT_EQ(colors(), 3) << "a damaged entry is made again";
  images.other_channels = {};
  EXPECT_EQ(colors(), 3);
  const SummaryCache larger{.folder = folder.path(), .min_images = 4};
  EXPECT_EQ(cached_summary(images, 2, larger).color, 0) << "small sets are not cached";
  const SummaryCache nowhere{.folder = entry / "none", .min_images = 3};
  EXPECT_EQ(cached_summary(images, 2, nowhere).color, 0);
}

// As in a Parquet file, whose images all have its stamp.
TEST(ImageSummary, DistinguishesSubsetsOfOneFile) {
  const TestFolder folder;
  const SummaryCache cache{.folder = folder.path(), .min_images = 1};
  const auto images = std::make_shared<FakeImages>(3, ImageShape{8, 9, 1});
  images->name = "some";
  images->damaged = {1};
  EXPECT_EQ(cached_summary(SubsetImages(images, {0, 1}), 2, cache).unreadable, 1);
  EXPECT_EQ(cached_summary(SubsetImages(images, {0, 2}), 2, cache).unreadable, 0);
}

}  // namespace
}  // namespace gallop::data
