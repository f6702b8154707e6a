#include "gallop/data/statistics.h"

#include <unistd.h>

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/data/fake_images.h"

namespace gallop::data {
namespace {

class Statistics : public testing::Test {
 protected:
  Statistics()
      : folder(fs::path(testing::TempDir()) / ("statistics-" + std::to_string(getpid()))) {}
  ~Statistics() override { fs::remove_all(folder); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) result.push_back(entry.path());
    }
    return result;
  }

  const fs::path folder;
};

TEST_F(Statistics, AreTheMeanAndDeviationOfAllPixels) {
  const FakeImages images(70, {9, 11, 3});
  const auto statistics = measure_statistics(images, {.threads = 2});
  EXPECT_EQ(statistics.images, 70);
  EXPECT_EQ(statistics.pixels, 70 * 99);
  for (int c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 70; ++i) {
      for (int y = 0; y < 9; ++y) {
        for (int x = 0; x < 11; ++x) {
          const double value = FakeImages::pixel(i, y, x, c) / 255.0;
          sum += value;
          squares += value * value;
        }
      }
    }
    const double mean = sum / (70 * 99);
    EXPECT_NEAR(statistics.means()[size_t(c)], mean, 1e-12);
    EXPECT_NEAR(statistics.deviations()[size_t(c)], std::sqrt(squares / (70 * 99) - mean * mean),
                1e-12);
  }
}

TEST_F(Statistics, DoNotDependOnThreadsOrStorage) {
  const ImageShape shape{9, 11, 1};
  const FakeImages read(500, shape);
  const FakeStoredImages stored(500, shape);
  const auto expected = measure_statistics(read, {.channels = 1, .max_images = 200});
  EXPECT_EQ(expected.images, 200);
  EXPECT_EQ(measure_statistics(read, {.channels = 1, .max_images = 200, .threads = 4}), expected);
  EXPECT_EQ(measure_statistics(stored, {.channels = 1, .max_images = 200, .threads = 2}), expected);
}

TEST_F(Statistics, AreExactForLargeImages) {
  const FakeImages images(2, {700, 800, 1});
  const auto statistics = measure_statistics(images, {.channels = 1});
  uint64_t squares = 0;
  for (int64_t i = 0; i < 2; ++i) {
    for (int y = 0; y < 700; ++y) {
      for (int x = 0; x < 800; ++x) {
        const uint64_t value = FakeImages::pixel(i, y, x, 0);
        squares += value * value;
      }
    }
  }
  EXPECT_EQ(statistics.channels[0].sum_of_squares, squares);
}

TEST_F(Statistics, LeaveOneColorAsItIs) {
  class Gray final : public FakeImages {
   public:
    Gray() : FakeImages(3, {2, 2, 1}) {}
    void read(int64_t, const DecodeRequest&, Image& image) const override {
      image = {.height = 2, .width = 2, .channels = 1, .pixels = {51, 51, 51, 51}};
    }
  };
  const auto statistics = measure_statistics(Gray(), {.channels = 1});
  EXPECT_DOUBLE_EQ(statistics.means()[0], 0.2);
  EXPECT_EQ(statistics.deviations()[0], 1);
}

TEST_F(Statistics, StopAtOrSkipDamagedImages) {
  FakeImages images(4, {3, 3, 3});
  images.damaged = {1};
  EXPECT_THROW(measure_statistics(images, {}), DataError);
  EXPECT_EQ(measure_statistics(images, {.skip_broken = true}).images, 3);
  images.damaged = {0, 1, 2, 3};
  EXPECT_THROW(measure_statistics(images, {.skip_broken = true}), DataError);
  EXPECT_THROW(measure_statistics(FakeImages(0, {3, 3, 3}), {}), DataError);
}

TEST_F(Statistics, AreKeptInTheCacheUnderTheirIdentity) {
  const FakeImages images(30, {5, 5, 3});
  const auto first = cached_statistics(images, {}, "flowers", folder);
  EXPECT_EQ(images.reads, 30);
  EXPECT_EQ(cached_statistics(images, {}, "flowers", folder), first);
  EXPECT_EQ(images.reads, 30);
  cached_statistics(images, {}, "birds", folder);
  EXPECT_EQ(images.reads, 60);
  cached_statistics(images, {.channels = 1}, "flowers", folder);
  EXPECT_EQ(images.reads, 90);
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(Statistics, AreMeasuredAnewWhereTheCacheIsDamaged) {
  const FakeImages images(30, {5, 5, 3});
  const auto expected = cached_statistics(images, {}, "flowers", folder);
  const fs::path path = files().at(0);
  const std::string good = read_file(path);
  int reads = 30;
  for (size_t at = 0; at <= good.size(); at += 7) {
    std::string bad = good;
    if (at < good.size()) bad[at] = bad[at] == '1' ? '2' : '1';
    bad.resize(at < good.size() ? good.size() : good.size() / 2);
    write_file_atomically(path, bad);
    EXPECT_EQ(cached_statistics(images, {}, "flowers", folder), expected);
    EXPECT_EQ(images.reads, reads += 30) << at;
    EXPECT_EQ(read_file(path), good);
  }
}

TEST_F(Statistics, DoWithoutACacheThatCannotBeWritten) {
  const FakeImages images(3, {5, 5, 3});
  make_folders(folder);
  write_file_atomically(folder / "file", "in the way");
  EXPECT_EQ(cached_statistics(images, {}, "flowers", folder / "file"),
            measure_statistics(images, {}));
}

}  // namespace
}  // namespace gallop::data
