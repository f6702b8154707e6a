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

std::shared_ptr<const BatchTransforms> noise(const std::string& options, const Fields& fields) {
  static const BatchTransformRegistry kRegistry = built_in_batch_transforms();
  config::ComponentList list(kRegistry);
  list.items.push_back(config::component_of(kRegistry, "gaussian-noise" + options));
  return build_batch_transforms(kRegistry, list, fields);
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

TEST(GaussianNoise, FollowsFromSeedEpochAndPositionAlone) {
  const Zeros samples;
  const auto transforms = noise("", samples.fields());
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

TEST(GaussianNoise, RefusesIndices) {
  const Fields tokens({.name = "tokens", .shape = {{4}, c10::kLong}},
                      {.name = "labels", .shape = {{4}, c10::kLong}});
  EXPECT_THROW(noise("", tokens), UsageError);
}

}  // namespace
}  // namespace gallop::data
