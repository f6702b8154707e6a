// The augmentations of a list in sequence, as a training reads them.
#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations.h"
#include "gallop/data/augmentations/color.h"
#include "gallop/data/augmentations/erasing.h"
#include "gallop/data/augmentations/policies.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/loader.h"
#include "unit/config/component_of.h"
#include "unit/data/fake_images.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

using Augmentations = std::vector<std::unique_ptr<Augmentation>>;

const ImageShape kShape{20, 24, 3};

Augmentations every_stage() {
  Augmentations list;
  list.push_back(make_crop({}));
  list.push_back(make_flip({}));
  list.push_back(make_color_jitter({.brightness = {0.4}, .saturation = {0.4}, .hue = {0.1}}));
  list.push_back(make_rand_augment({.fill = {128}}));
  list.push_back(make_aug_mix({}));
  list.push_back(make_random_erasing({.value = "random"}));
  list.push_back(make_cutout({.length = 0.2}));
  return list;
}

ImagePipeline pipeline(uint64_t seed = 5) {
  return {.shape = kShape, .seed = seed, .mean = {0.5, 0.4, 0.3}, .deviation = {0.2, 0.3, 0.4}};
}

std::vector<float> filled(const ImageSamples& samples, int64_t index, int64_t epoch) {
  std::vector<float> image(static_cast<size_t>(kShape.height * kShape.width * kShape.channels));
  int64_t label = 0;
  EXPECT_TRUE(fill_row(samples, index, epoch, image.data(), &label));
  return image;
}

TEST(AugmentedImages, AreFunctionsOfSeedEpochAndIndex) {
  const FakeStoredImages images(50, kShape);
  const ImageSamples samples(images, pipeline(), every_stage());
  const ImageSamples again(images, pipeline(), every_stage());
  const ImageSamples reseeded(images, pipeline(6), every_stage());
  for (int64_t i = 49; i >= 0; --i) {
    const auto image = filled(samples, i, 1);
    EXPECT_EQ(image, filled(again, i, 1));
    EXPECT_NE(image, filled(samples, i, 2));
    EXPECT_NE(image, filled(reseeded, i, 1));
  }
}

std::vector<std::vector<float>> inputs(Loader& loader, int batches) {
  std::vector<std::vector<float>> result;
  for (int i = 0; i < batches; ++i) {
    const auto batch = loader.next();
    // In memory, images are [H, W, C].
    const auto* const data = batch->input().const_data_ptr<float>();
    result.emplace_back(data, data + batch->input().numel());
  }
  return result;
}

TEST(AugmentedImages, DependNeitherOnThreadsNorOnAResume) {
  const FakeStoredImages images(50, kShape);
  const ImageSamples samples(images, pipeline(), every_stage());
  Loader reference(samples, {.batch = 8, .threads = 0}, {.seed = 7});
  const auto expected = inputs(reference, 20);
  for (const int threads : {1, 2, 8}) {
    Loader loader(samples, {.batch = 8, .threads = threads}, {.seed = 7});
    EXPECT_EQ(inputs(loader, 20), expected) << threads << " threads";
  }
  Loader first(samples, {.batch = 8, .threads = 2}, {.seed = 7});
  inputs(first, 11);
  Loader resumed(samples, {.batch = 8, .threads = 2}, first.state());
  EXPECT_EQ(inputs(resumed, 9), (std::vector(expected.begin() + 11, expected.end())));
}

TEST(AugmentedImages, KeepTheirFlipsBesideOtherStages) {
  const FakeStoredImages images(50, kShape);
  const auto moves = [] {
    Augmentations list;
    list.push_back(make_crop({}));
    list.push_back(make_flip({}));
    return list;
  };
  Augmentations more = moves();
  more.push_back(make_color_jitter({.brightness = {1, 1}}));  // Draws, but changes nothing.
  const ImageSamples plain(images, pipeline(), moves());
  const ImageSamples jittered(images, pipeline(), std::move(more));
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(filled(plain, i, 3), filled(jittered, i, 3));
}

TEST(AugmentedImages, AreErasedAfterNormalizing) {
  const FakeStoredImages images(50, kShape);
  Augmentations erased;
  erased.push_back(make_random_erasing({.p = 1}));
  const ImageSamples plain(images, pipeline(), {});
  const ImageSamples samples(images, pipeline(), std::move(erased));
  for (int64_t i = 0; i < 50; ++i) {
    const auto before = filled(plain, i, 0), after = filled(samples, i, 0);
    int changed = 0;
    for (size_t k = 0; k < before.size(); ++k) {
      if (before[k] == after[k]) continue;
      EXPECT_EQ(after[k], 0);
      ++changed;
    }
    EXPECT_GT(changed, 10);
    EXPECT_LT(changed, 20 * 24 * 3 * 0.4);
  }
}

TEST(AugmentedImages, AreGrayWithoutColors) {
  const ImageShape shape{16, 16, 1};
  const FakeStoredImages images(4, shape);
  const ImagePipeline gray{.shape = shape, .mean = {0.5}, .deviation = {0.2}};
  Augmentations policy;
  policy.push_back(make_rand_augment({}));
  EXPECT_NO_THROW(ImageSamples(images, gray, std::move(policy)));
  Augmentations colors;
  colors.push_back(make_random_grayscale({}));
  EXPECT_THROW(ImageSamples(images, gray, std::move(colors)), UsageError);
}

// As in recipes: one number instead of a list, and names of torchvision.
TEST(AugmentedImages, AreConfiguredByName) {
  const AugmentationRegistry registry = built_in_augmentations();
  for (const char* text :
       {"rand-augment num_ops=1 magnitude=5 fill=128 interpolation=bilinear",
        "trivial-augment-wide fill=[1,2,3]", "auto-augment policy=svhn", "aug-mix all_ops=false",
        "color-jitter brightness=0.4 hue=[-0.1,0.2]", "random-grayscale p=1",
        "random-rotation degrees=30", "gaussian-blur kernel_size=5",
        "gaussian-blur kernel_size=[3,7] sigma=1", "random-perspective p=1 interpolation=nearest",
        "auto-augment policy=rand-m9-n3-mstd0.5-inc1",
        "random-affine degrees=10 shear=5 scale=[0.9,1.1]", "random-erasing value=random",
        "random-erasing value=0.5", "cutout length=0.25"}) {
    EXPECT_NE(registry.build(config::component_of(registry, text)), nullptr) << text;
  }
  for (const char* text : {"random-erasing value=grey", "rand-augment fill=300",
                           "color-jitter brightness=a", "auto-augment interpolation=cubic"}) {
    EXPECT_THROW(config::component_of(registry, text), UsageError) << text;
  }
  for (const char* text : {"auto-augment policy=mnist", "gaussian-blur"}) {
    EXPECT_THROW(registry.build(config::component_of(registry, text)), UsageError) << text;
  }
}

}  // namespace
}  // namespace gallop::data
