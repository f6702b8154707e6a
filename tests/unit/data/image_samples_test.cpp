#include "gallop/data/image_samples.h"

#include <deque>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations.h"
#include "unit/data/fake_images.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

using Augmentations = std::vector<std::unique_ptr<Augmentation>>;

ImagePipeline pipeline_for(const ImageShape& shape) {
  ImagePipeline pipeline{.shape = shape};
  pipeline.mean.assign(static_cast<size_t>(shape.channels), 0);
  pipeline.deviation.assign(static_cast<size_t>(shape.channels),
                            1.0 / 255);  // the bytes themselves
  return pipeline;
}

struct Filled {
  std::vector<float> input;
  int64_t label = -1;
  bool operator==(const Filled&) const = default;
};

std::optional<Filled> fill(const ImageSamples& samples, int64_t index, int64_t epoch = 0) {
  const auto sizes = samples.fields().input().shape.sizes;
  Filled row;
  row.input.assign(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2]), -1);
  if (!fill_row(samples, index, epoch, row.input.data(), &row.label)) return std::nullopt;
  return row;
}

Augmentations one(std::unique_ptr<Augmentation> augmentation) {
  Augmentations list;
  list.push_back(std::move(augmentation));
  return list;
}

TEST(ImageSamples, GivesPixelsChannelsLastAndTheLabel) {
  const FakeImages images(5, {4, 6, 3});
  const ImageSamples samples(images, pipeline_for({4, 6, 3}), {});
  EXPECT_EQ(samples.size(), 5);
  EXPECT_EQ(samples.fields().input().shape.sizes, (std::vector<int64_t>{3, 4, 6}));
  EXPECT_TRUE(samples.fields().input().shape.channels_last);
  const auto row = fill(samples, 4);
  EXPECT_EQ(row->label, 1);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(row->input[static_cast<size_t>((y * 6 + x) * 3 + c)],
                    FakeImages::pixel(4, y, x, c), 1e-3);
      }
    }
  }
}

/// Images whose sizes differ.
class ImagesOfSizes final : public ImageSet {
 public:
  explicit ImagesOfSizes(const std::vector<std::pair<int, int>>& sizes) {
    for (const auto& [height, width] : sizes) images_.emplace_back(1, ImageShape{height, width, 3});
  }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  int64_t label(int64_t) const override { return 0; }
  const std::vector<std::string>& class_names() const override {
    return images_.front().class_names();
  }
  std::string describe(int64_t index) const override { return std::to_string(index); }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    of(index).read(0, request, image);
  }
  ImageHeader header(int64_t index) const override { return of(index).header(0); }

 private:
  const FakeImages& of(int64_t index) const { return images_[static_cast<size_t>(index)]; }
  std::deque<FakeImages> images_;
};

TEST(ImageSamples, KeepTheAspectRatioOfRectangles) {
  const ImagesOfSizes images({{40, 60}, {60, 40}, {30, 30}, {41, 60}, {20, 400}, {16, 23}});
  const auto shapes = shapes_of_rectangles(images, 16, 3, 2);
  ImagePipeline pipeline = pipeline_for({16, 16, 3});
  pipeline.resize = true;
  const ImageSamples samples(images, pipeline, {}, shapes);
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(samples.input_sizes(0), (Sizes{3, 16, 24}));
  EXPECT_EQ(samples.input_sizes(1), (Sizes{3, 24, 16}));
  EXPECT_EQ(samples.input_sizes(2), (Sizes{3, 16, 16}));
  EXPECT_EQ(samples.input_sizes(3), (Sizes{3, 16, 16}));  // 23.4, in multiples of 8
  EXPECT_EQ(samples.input_sizes(4), (Sizes{3, 16, 48}));  // At most 3 times the shorter side.
  EXPECT_EQ(samples.input_sizes(5), (Sizes{3, 16, 16}));
  EXPECT_EQ(samples.fields().input().shape.sizes, (Sizes{3, 16, 48}));
  // The largest region of that aspect ratio in the middle.
  const std::vector<Box> boxes = {{0, 0, 40, 60}, {0, 0, 60, 40},   {0, 0, 30, 30},
                                  {0, 9, 41, 41}, {0, 170, 20, 60}, {0, 3, 16, 16}};
  for (int64_t i = 0; i < images.size(); ++i) {
    Image image;
    images.read(i, {}, image);
    const Sizes sizes = samples.input_sizes(i);
    std::vector<uint8_t> resized(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2]));
    Resizer().resize({image.pixels.data(), image.height, image.width, 3},
                     boxes[static_cast<size_t>(i)], static_cast<int>(sizes[1]),
                     static_cast<int>(sizes[2]), resized.data());
    const auto row = fill(samples, i);
    for (size_t k = 0; k < resized.size(); ++k) EXPECT_NEAR(row->input[k], resized[k], 1e-3) << i;
  }
}

TEST(ImageSamples, GivesTheSameFromMemory) {
  const FakeImages read(8, {20, 20, 3});
  const FakeStoredImages stored(8, {20, 20, 3});
  for (const bool resize : {false, true}) {
    ImagePipeline pipeline = pipeline_for({20, 20, 3});
    if (resize) pipeline = pipeline_for({12, 12, 3});
    pipeline.resize = resize;
    const ImageSamples one_by_one(read, pipeline, one(make_crop({})));
    const ImageSamples at_once(stored, pipeline, one(make_crop({})));
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(fill(one_by_one, i, 3), fill(at_once, i, 3));
  }
  EXPECT_GE(read.reads, 16);
}

TEST(ImageSamples, ConvertsStoredImagesOfOtherChannels) {
  const FakeStoredImages stored(2, {4, 4, 1});
  const ImageSamples samples(stored, pipeline_for({4, 4, 3}), {});
  EXPECT_EQ(fill(samples, 1)->input.size(), 48u);
  EXPECT_GT(stored.reads, 2);
}

TEST(ImageSamples, ChangesWithEpochSeedAndIndexOnly) {
  const FakeStoredImages images(300, {16, 16, 3});
  ImagePipeline pipeline = pipeline_for({16, 16, 3});
  const ImageSamples samples(images, pipeline, one(make_crop({})));
  pipeline.seed = 1;
  const ImageSamples reseeded(images, pipeline, one(make_crop({})));
  int same_epoch = 0, same_seed = 0;
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(fill(samples, i, 1), fill(samples, i, 1));
    same_epoch += fill(samples, i, 0) == fill(samples, i, 1);
    same_seed += fill(samples, i, 0) == fill(reseeded, i, 0);
  }
  // One position in 81 is the same by chance.
  EXPECT_LT(same_epoch, 15);
  EXPECT_LT(same_seed, 15);
}

TEST(ImageSamples, PadsWithBlackBeforeNormalizing) {
  const FakeStoredImages images(1, {8, 8, 1});
  ImagePipeline pipeline{.shape = {8, 8, 1}, .mean = {0.5}, .deviation = {0.25}};
  const ImageSamples samples(images, pipeline, one(make_crop({.padding = 7})));
  int black = 0;
  const auto row = fill(samples, 0);
  for (const float value : row->input) black += value == -2;
  EXPECT_GT(black, 8);
}

TEST(ImageSamples, BringsImagesOfAnySizeToOne) {
  FakeImages images(4, {30, 40, 3});
  images.other_height = {2};
  ImagePipeline pipeline = pipeline_for({10, 10, 3});
  pipeline.resize = true;
  const ImageSamples middle(images, pipeline, {});
  EXPECT_TRUE(fill(middle, 1));
  EXPECT_TRUE(fill(middle, 2));
  EXPECT_EQ(fill(middle, 1, 0), fill(middle, 1, 5));
  const ImageSamples parts(images, pipeline, one(make_random_resized_crop({})));
  EXPECT_NE(fill(parts, 1, 0), fill(parts, 1, 5));
}

TEST(ImageSamples, NamesAnImageOfAnotherSize) {
  FakeImages images(4, {30, 40, 3});
  images.other_height = {2};
  ImagePipeline pipeline = pipeline_for({30, 40, 3});
  pipeline.skip_broken = true;  // it is not damaged, so it is not skipped
  const ImageSamples samples(images, pipeline, {});
  EXPECT_TRUE(fill(samples, 1));
  try {
    fill(samples, 2);
    FAIL() << "image 2 has another height";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "item 2: is 31 x 40 pixels (height x width) where the others are 30 x 40; set "
                 "data.image_size to bring all images to one size");
  }
}

TEST(ImageSamples, StopsAtOrSkipsDamagedImages) {
  FakeImages images(4, {8, 8, 3});
  images.damaged = {3};
  ImagePipeline pipeline = pipeline_for({8, 8, 3});
  EXPECT_THROW(fill(ImageSamples(images, pipeline, {}), 3), DataError);
  pipeline.skip_broken = true;
  EXPECT_FALSE(fill(ImageSamples(images, pipeline, {}), 3));
}

TEST(ImageSamples, RefusesAugmentationsThatDoNotFit) {
  const FakeImages images(4, {8, 8, 3});
  EXPECT_THROW(ImageSamples(images, pipeline_for({8, 8, 3}), one(make_crop({.padding = 8}))),
               UsageError);
  EXPECT_THROW(ImageSamples(images, pipeline_for({8, 8, 3}), one(make_random_resized_crop({}))),
               UsageError);
}

/// Each pixel encodes its position: twice its column, twice its row. With `reduce`, the reader
/// honors the region and returns it at half size, each pixel the mean of four.
class PlaceImages final : public FakeImages {
 public:
  explicit PlaceImages(bool reduce) : FakeImages(50, {64, 96, 3}), reduce_(reduce) {}

  void read(int64_t, const DecodeRequest& request, Image& image) const override {
    Region region{.height = 64, .width = 96};
    if (reduce_) {
      region = request.region->choose(64, 96);
      image.reduction = 2;
      image.top = region.top / 2 * 2;
      image.left = region.left / 2 * 2;
    }
    image.channels = 3;
    image.height = (region.top + region.height - image.top + image.reduction - 1) / image.reduction;
    image.width = (region.left + region.width - image.left + image.reduction - 1) / image.reduction;
    image.pixels.clear();
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        image.pixels.push_back(mean_of_place(image.left, x, image.reduction));
        image.pixels.push_back(mean_of_place(image.top, y, image.reduction));
        image.pixels.push_back(0);
      }
    }
  }

 private:
  static uint8_t mean_of_place(int first, int at, int reduction) {
    return static_cast<uint8_t>(2 * (first + reduction * at) + reduction - 1);
  }
  bool reduce_;
};

TEST(ImageSamples, TakesReducedPartsFromAReader) {
  const PlaceImages reduced(true), whole(false);
  ImagePipeline pipeline = pipeline_for({8, 8, 3});
  pipeline.resize = true;
  for (const bool random : {false, true}) {
    const auto augmentations = [random] {
      return random ? one(make_random_resized_crop({.scale = {0.3, 1}})) : Augmentations();
    };
    const ImageSamples from_reduced(reduced, pipeline, augmentations());
    const ImageSamples from_whole(whole, pipeline, augmentations());
    for (int64_t i = 0; i < 50; ++i) {
      const auto a = fill(from_reduced, i), b = fill(from_whole, i);
      // The edge of a region may fall between the reduced pixels: half of one is two levels.
      for (size_t k = 0; k < a->input.size(); ++k) EXPECT_NEAR(a->input[k], b->input[k], 2.1) << i;
    }
  }
}

}  // namespace
}  // namespace gallop::data
