#include "gallop/data/batch_transform.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/device_loader.h"
#include "unit/config/component_of.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

/// Images of zeros.
class Zeros final : public Samples {
 public:
  Zeros() : Samples(image_fields({3, 5, 5})) {}
  int64_t size() const override { return 64; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    std::fill_n(row.as<float>(0), 75, 0.0F);
    *row.as<int64_t>(1) = index;
    return true;
  }
};

std::shared_ptr<const BatchTransforms> transforms_of(const std::string& transform,
                                                     const Fields& fields) {
  static const BatchTransformRegistry kRegistry = built_in_batch_transforms();
  config::ComponentList list(kRegistry);
  list.items.push_back(config::component_of(kRegistry, transform));
  return build_batch_transforms(kRegistry, list, fields, 0);
}

std::shared_ptr<const BatchTransforms> noise(const std::string& options, const Fields& fields) {
  return transforms_of("gaussian-noise" + options, fields);
}

at::Tensor inputs(const LoaderConfig& config, int64_t seed, int64_t epoch) {
  const Zeros samples;
  DeviceLoader loader(samples, config, {.seed = seed, .epoch = epoch}, c10::kCPU);
  return loader.next()->input().clone();
}

TEST(GaussianNoise, HasItsMeanAndDeviation) {
  const Zeros samples;
  const at::Tensor all =
      inputs({.batch = 64, .transforms = noise(" mean=0.5 sigma=2", samples.fields())}, 1, 0);
  EXPECT_NEAR(all.mean().item<double>(), 0.5, 0.15);
  EXPECT_NEAR(all.std().item<double>(), 2, 0.1);
}

TEST(PixelDropout, SetsAllChannelsOfAPixel) {
  const Zeros samples;
  const at::Tensor all = inputs(
      {.batch = 64, .transforms = transforms_of("pixel-dropout p=0.25 value=3", samples.fields())},
      1, 0);
  EXPECT_EQ(all.sizes(), (std::vector<int64_t>{64, 3, 5, 5}));
  for (int64_t channel : {1, 2}) EXPECT_TRUE(all.select(1, channel).equal(all.select(1, 0)));
  EXPECT_TRUE(all.eq(0).logical_or(all.eq(3)).all().item<bool>());
  EXPECT_NEAR(all.eq(3).to(at::kFloat).mean().item<double>(), 0.25, 0.03);
}

/// Sequences [T, F] of zeros.
class ZeroSequences final : public Samples {
 public:
  ZeroSequences() : Samples(image_fields({40, 3})) {}
  int64_t size() const override { return 64; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    std::fill_n(row.as<float>(0), 120, 0.0F);
    *row.as<int64_t>(1) = index;
    return true;
  }
};

TEST(PixelDropout, SetsEachNumberOfInputsThatAreNoImages) {
  const ZeroSequences samples;
  DeviceLoader loader(
      samples,
      {.batch = 64, .transforms = transforms_of("pixel-dropout p=0.25 value=3", samples.fields())},
      {.seed = 1}, c10::kCPU);
  const at::Tensor dropped = loader.next()->input().eq(3).to(at::kFloat);
  EXPECT_NEAR(dropped.mean().item<double>(), 0.25, 0.03);
  EXPECT_LT(dropped.mean(1).max().item<double>(), 0.7) << "of the times of one feature";
}

TEST(BatchTransforms, FollowFromSeedEpochAndPositionAlone) {
  const Zeros samples;
  for (const char* transform : {"gaussian-noise", "pixel-dropout p=0.5 value=1"}) {
    SCOPED_TRACE(transform);
    const auto transforms = transforms_of(transform, samples.fields());
    const LoaderConfig whole{.batch = 16, .transforms = transforms};
    const at::Tensor first = inputs(whole, 1, 0);
    EXPECT_TRUE(first.equal(inputs(whole, 1, 0)));
    EXPECT_FALSE(first.equal(inputs(whole, 2, 0)));
    EXPECT_FALSE(first.equal(inputs(whole, 1, 1)));
    // Slices of a batch match the whole batch.
    for (int part = 0; part < 2; ++part) {
      const at::Tensor half =
          inputs({.batch = 16, .part = part, .parts = 2, .transforms = transforms}, 1, 0);
      EXPECT_TRUE(half.equal(first.narrow(0, 8 * part, 8)));
    }
  }
}

TEST(BatchTransforms, RejectIndices) {
  const Fields tokens({.name = "tokens", .shape = {{4}, c10::kLong}},
                      {.name = "labels", .shape = {{4}, c10::kLong}});
  EXPECT_THROW(transforms_of("gaussian-noise", tokens), UsageError);
  EXPECT_THROW(transforms_of("pixel-dropout", tokens), UsageError);
}

}  // namespace
}  // namespace gallop::data
