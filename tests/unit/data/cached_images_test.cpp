#include "gallop/data/cached_images.h"

#include <fcntl.h>

#include <thread>

#include <gtest/gtest.h>

#include "gallop/data/shared_data.h"
#include "gallop/data/split.h"
#include "unit/data/fake_images.h"
#include "unit/data/forked.h"
#include "unit/data/format_files.h"

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

class SharedCachedImages : public testing::Test {
 protected:
  SharedCachedImages() { images.name = "images"; }

  std::shared_ptr<const SharedPieces> pieces() {
    return SharedData(folder.path()).pieces("images", 40, 6 * 7 * 3, 40 * 6 * 7 * 3, 1 << 20);
  }
  // Whether all images are correct, without reporting failures.
  static bool are_right(const CachedImages& cached) {
    for (int64_t i = 0; i < cached.size(); ++i) {
      const uint8_t* pixels = cached.stored_pixels(i);
      for (int at = 0; at < 6 * 7 * 3; ++at) {
        if (pixels[at] != FakeImages::pixel(i, at / 21, at / 3 % 7, at % 3)) return false;
      }
    }
    return true;
  }

  const TestFolder folder;
  FakeImages images{40, {6, 7, 3}};
};

TEST_F(SharedCachedImages, AnotherProcessFindsWhatOneHasDecoded) {
  const CachedImages cached(images, {6, 7, 3}, false, pieces());
  EXPECT_TRUE(are_right(cached));
  EXPECT_EQ(images.reads, 40);
  Forked other([&] {
    images.reads = 0;
    return are_right(CachedImages(images, {6, 7, 3}, false, pieces())) && images.reads == 0;
  });
  EXPECT_TRUE(other.end());
}

TEST_F(SharedCachedImages, PartsThatAreCutOtherwiseShareTheirImages) {
  const auto whole = std::shared_ptr<const ImageSet>(std::shared_ptr<void>(), &images);
  const auto read_twice = [&](const std::vector<int64_t>& indices) {
    const SubsetImages subset(whole, indices);
    const CachedImages cached(subset, {6, 7, 3}, false, pieces());
    for (size_t i = 0; i < indices.size(); ++i) {
      const uint8_t* pixels = cached.stored_pixels(static_cast<int64_t>(i));
      EXPECT_EQ(pixels[4], FakeImages::pixel(indices[i], 0, 1, 1));
      EXPECT_EQ(cached.stored_pixels(static_cast<int64_t>(i)), pixels);
    }
  };
  read_twice({1, 5, 30});
  read_twice({5, 30, 39});
  EXPECT_EQ(images.reads, 4);
}

TEST_F(SharedCachedImages, OneThatWasKilledWhileItDecodesHoldsNobodyUp) {
  const Signal decoding, waiting;
  /// Never returns from reading image 3.
  class Stuck final : public ImageSet {
   public:
    Stuck(const ImageSet& images, const Signal& decoding) : images_(images), decoding_(decoding) {}
    int64_t size() const override { return images_.size(); }
    int64_t label(int64_t index) const override { return images_.label(index); }
    const std::vector<std::string>& class_names() const override { return images_.class_names(); }
    std::string describe(int64_t index) const override { return images_.describe(index); }
    void read(int64_t index, const DecodeRequest& request, Image& image) const override {
      if (index == 3) decoding_.send();
      while (index == 3) pause();
      images_.read(index, request, image);
    }

   private:
    const ImageSet& images_;
    const Signal& decoding_;
  };
  Forked first([&] {
    const Stuck stuck(images, decoding);
    return are_right(CachedImages(stuck, {6, 7, 3}, false, pieces()));
  });
  decoding.wait();
  Forked second([&] {
    waiting.send();
    // The first three are already cached.
    return are_right(CachedImages(images, {6, 7, 3}, false, pieces())) && images.reads == 37;
  });
  waiting.wait();
  first.kill();
  EXPECT_TRUE(second.end());
}

TEST_F(SharedCachedImages, AnImageThatHasChangedIsThisProcesssOwn) {
  EXPECT_TRUE(are_right(CachedImages(images, {6, 7, 3}, false, pieces())));
  images.state = 1;
  const CachedImages cached(images, {6, 7, 3}, false, pieces());
  EXPECT_TRUE(are_right(cached));
  EXPECT_TRUE(are_right(cached));
  EXPECT_EQ(images.reads, 80);
}

TEST_F(SharedCachedImages, ADamagedImageIsDecodedAgain) {
  EXPECT_TRUE(are_right(CachedImages(images, {6, 7, 3}, false, pieces())));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().size() != 32) continue;
    const FileDescriptor file(open(entry.path().c_str(), O_RDWR));
    ASSERT_EQ(pwrite(file.get(), "damage", 6, 8192 + 126 * 5), 6);
  }
  EXPECT_TRUE(are_right(CachedImages(images, {6, 7, 3}, false, pieces())));
  EXPECT_EQ(images.reads, 41);
}

TEST_F(SharedCachedImages, ThrowsForADamagedFileInEveryProcess) {
  images.damaged = {1};
  for (int process = 0; process < 2; ++process) {
    const CachedImages cached(images, {6, 7, 3}, false, pieces());
    EXPECT_THROW(cached.stored_pixels(1), DataError);
    EXPECT_THROW(cached.stored_pixels(1), DataError);
    EXPECT_EQ(cached.stored_pixels(2)[0], FakeImages::pixel(2, 0, 0, 0));
  }
  EXPECT_EQ(images.reads, 1);
}

}  // namespace
}  // namespace gallop::data
