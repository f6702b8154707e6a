#include "gallop/data/quality/image_quality.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/philox.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

// A smooth random picture; equal for equal seeds at any size and brightness.
Image photo(int height, int width, uint64_t seed, double contrast = 1) {
  Philox random(seed, Purpose::kSplit, 0, 0);
  struct Wave {
    double x, y, phase;
    double of_channel[3];
  };
  std::vector<Wave> waves(12);
  const auto uniform = [&] { return static_cast<double>(random.next_u64() >> 11) * 0x1p-53; };
  for (Wave& wave : waves) {
    wave = {.x = 5 * uniform(), .y = 5 * uniform(), .phase = 6 * uniform()};
    for (double& amplitude : wave.of_channel) amplitude = 20 + 20 * uniform();
  }
  Image image{.height = height, .width = width, .channels = 3};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        double value = 0;
        for (const Wave& wave : waves) {
          value += wave.of_channel[c] * std::cos(wave.x * (x + 0.5) / width * 6 +
                                                 wave.y * (y + 0.5) / height * 6 + wave.phase);
        }
        image.pixels.push_back(
            static_cast<uint8_t>(std::clamp(128 + contrast * value, 0.0, 255.0)));
      }
    }
  }
  return image;
}

Image plain(int side, uint8_t value) {
  return {.height = side,
          .width = side,
          .channels = 3,
          .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * side * side), value)};
}

Image mirror(Image image) {
  const std::vector<uint8_t> pixels = image.pixels;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const auto from = static_cast<size_t>(3 * (y * image.width + image.width - 1 - x));
      std::copy_n(pixels.begin() + static_cast<ptrdiff_t>(from), 3,
                  image.pixels.begin() + 3 * (y * image.width + x));
    }
  }
  return image;
}

class ImageQuality : public DataFolder {
 protected:
  void add(const std::string& name, const Image& image, int quality = 95) const {
    folder.add(name, make_jpeg(image, {.quality = quality}));
  }

  // Pictures that have nothing in common.
  void add_others() const {
    for (uint64_t i = 0; i < 24; ++i) {
      const std::string number = std::to_string(i);
      add("train/cat/" + number + ".jpg", photo(40, 48, 100 + i));
      add("train/dog/" + number + ".jpg", photo(44, 40, 200 + i));
      add("test/cat/" + number + ".jpg", photo(40, 40, 300 + i));
      add("test/dog/" + number + ".jpg", photo(40, 44, 400 + i));
    }
  }

  DataQuality check(int threads = 2) {
    config.module = config::Component(modules, "folder");
    config.path = folder.name() + "/";
    return read_data(config, modules, augmentations, options)->check_quality(threads);
  }

  using Names = std::vector<std::string>;
  static Names excluded(const DataQuality& quality, const std::string& kind) {
    for (const QualityFinding& one : quality.findings) {
      if (one.kind == kind) return one.excluded;
    }
    return {};
  }
};

TEST_F(ImageQuality, FindsNothingInOrdinaryPictures) {
  add_others();
  const DataQuality quality = check();
  for (const QualityFinding& one : quality.findings) ADD_FAILURE() << one.kind << ": " << one.text;
  EXPECT_EQ(quality.splits[0], std::pair(std::string("train"), int64_t{48}));
}

TEST_F(ImageQuality, FindsAllPlantedDefects) {
  add_others();
  add("train/cat/copy.jpg", photo(40, 48, 103));                // As cat/3.
  add("train/dog/encoded.jpg", photo(44, 40, 204), 40);         // Nearly dog/4.
  add("train/dog/small.jpg", photo(33, 30, 205));               // Nearly dog/5.
  add("train/dog/pale.jpg", photo(44, 40, 206, 0.7));           // Nearly dog/6.
  add("train/dog/turned.jpg", mirror(photo(44, 40, 210)), 60);  // Nearly dog/10, mirrored.
  add("train/dog/cat.jpg", photo(40, 48, 107));                 // As cat/7, with another label.
  add("train/cat/of_test.jpg", photo(40, 40, 308));             // As test/cat/8.
  add("test/dog/of_train.jpg", photo(44, 40, 209), 60);         // Nearly train/dog/9.
  add("train/cat/huge.jpg", photo(160, 190, 500));
  add("train/cat/wide.jpg", photo(20, 96, 501));
  add("train/cat/black.jpg", plain(40, 3));
  folder.add("train/cat/broken.jpg", "no image");
  for (const int threads : {1, 3}) {
    const DataQuality quality = check(threads);
    EXPECT_EQ(excluded(quality, "damaged-files"), (Names{"train/cat/broken.jpg"}));
    EXPECT_EQ(excluded(quality, "exact-duplicates"),
              (Names{"train/cat/copy.jpg", "train/dog/cat.jpg"}));
    EXPECT_EQ(excluded(quality, "near-duplicates"),
              (Names{"train/dog/turned.jpg", "train/dog/encoded.jpg", "train/dog/small.jpg",
                     "train/dog/pale.jpg"}));
    EXPECT_EQ(excluded(quality, "conflicting-labels"),
              (Names{"train/cat/7.jpg", "train/dog/cat.jpg"}));
    EXPECT_EQ(excluded(quality, "leakage"), (Names{"train/cat/of_test.jpg", "train/dog/9.jpg"}));
    EXPECT_EQ(excluded(quality, "size-outliers"), (Names{"train/cat/huge.jpg"}));
    EXPECT_EQ(excluded(quality, "aspect-ratio-outliers"), (Names{"train/cat/wide.jpg"}));
    EXPECT_EQ(excluded(quality, "brightness-outliers"), (Names{"train/cat/black.jpg"}));
    EXPECT_EQ(excluded(quality, "uniform-images"), (Names{"train/cat/black.jpg"}));
    EXPECT_EQ(quality.findings.size(), 9u);
  }
  // What the check has found is gone once it is excluded.
  const DataQuality before = check();
  for (const QualityFinding& one : before.findings) {
    config.exclude.insert(config.exclude.end(), one.excluded.begin(), one.excluded.end());
  }
  const DataQuality after = check();
  for (const QualityFinding& one : after.findings) ADD_FAILURE() << one.kind << ": " << one.text;
  EXPECT_TRUE(contains(after.notes.back(), "13 training samples are left out (data.exclude)"));
}

TEST_F(ImageQuality, HasThumbnailsOfTheFirstGroups) {
  add_others();
  for (uint64_t i = 0; i < 14; ++i) {
    add("train/cat/copy" + std::to_string(i) + ".jpg", photo(40, 48, 100 + i));
  }
  add("train/cat/huge.jpg", photo(260, 320, 500));
  const DataQuality quality = check();
  const QualityFinding& copies = quality.findings.at(0);
  ASSERT_EQ(copies.groups.size(), 14u);
  EXPECT_EQ(copies.groups[11][1].picture.width, 48);
  EXPECT_TRUE(copies.groups[12][1].picture.pixels.empty());
  const QualityFinding& huge = quality.findings.at(1);
  EXPECT_EQ(huge.kind, "size-outliers");
  EXPECT_EQ(huge.groups[0][0].value, "260 x 320");
  EXPECT_EQ(huge.groups[0][0].picture.width, 128);
  EXPECT_EQ(huge.groups[0][0].picture.height, 104);
}

}  // namespace
}  // namespace gallop::data
