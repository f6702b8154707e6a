#include "gallop/train/lr_range_test.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/model/mlp.h"
#include "unit/data/image_fields.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

// Images whose class is encoded in one pixel.
class Dots final : public data::Samples {
 public:
  Dots() : Samples(data::image_fields({3, 8, 8})) {}
  int64_t size() const override { return 60; }
  bool fill(int64_t index, int64_t /*epoch*/, const data::SampleRow& row,
            data::Scratch& /*scratch*/) const override {
    auto* const pixels = row.as<float>(0);
    std::fill_n(pixels, 3 * 8 * 8, 0.0F);
    pixels[9 * (index % 5)] = 1;
    *row.as<int64_t>(1) = index % 5;
    return true;
  }
};

std::unique_ptr<model::Model> make_mlp() { return model::make_mlp({}, kImages, 1); }
// Matrices that optimizers such as muon update quickly.
std::unique_ptr<model::Model> make_narrow_mlp() {
  return model::make_mlp({.hidden = {48}}, kImages, 1);
}

struct Fixture {
  Trainee trainee;
  Dots samples;
  StopRequest stop;

  explicit Fixture(const std::string& optimizer, const MakeModel& make_model = make_mlp)
      : trainee({.name = "", .make_model = make_model, .optimizer = optimizer}, {}) {}

  LrRangeTest test(const LrRangeTestConfig& config, const StepConfig& step = {},
                   const std::function<void(const schedule::RangePoint&)>& on_point = {}) {
    return test_lr_range({*trainee.model, *trainee.optimizer, samples, stop}, config, step,
                         {.batch = 20}, on_point);
  }
};

std::vector<at::Tensor> copies(const NamedTensors& tensors) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back(tensor.detach().clone());
  return all;
}

class LrRange : public testing::TestWithParam<std::string> {};

TEST_P(LrRange, LossFallsSomewhereAndAllIsAsItWas) {
  Fixture fixture(GetParam(), make_narrow_mlp);
  const auto before = copies(fixture.trainee.everything());
  for (const int64_t accumulate : {1, 4}) {
    const StepConfig step{.gradient_accumulation = accumulate, .compile = compile::CompileConfig()};
    const LrRangeTest test =
        fixture.test({.min = 1e-6, .max = 1e4, .rates = 60, .memory = 0.5}, step);
    EXPECT_FALSE(test.stopped);
    ASSERT_GT(test.points.size(), 20);
    EXPECT_NEAR(test.points.front().loss, std::log(5), 0.5);
    const auto range = schedule::range_of_fall(test.points);
    ASSERT_TRUE(range);
    EXPECT_LT(range->max, test.points.back().lr);
    const auto after = copies(fixture.trainee.everything());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(before[i], after[i])) << fixture.trainee.everything()[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LrRange, testing::ValuesIn(optim::built_in_optimizers().names()));

TEST(LrRangeTest, EndsWhereTrainingDiverges) {
  const LrRangeTest test =
      Fixture("sgd").test({.min = 1e-6, .max = 1e4, .rates = 60, .memory = 0.5});
  EXPECT_TRUE(test.diverged);
  ASSERT_GT(test.points.size(), 30);
  EXPECT_LT(test.points.size(), 60);
}

/// Cross-entropy minus 5.
class NegativeLoss final : public Loss {
 public:
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    return loss_->sum(output, batch).sub(loss_->count(batch).to(at::kFloat), 5);
  }
  at::Tensor count(const NamedTensors& batch) const override { return loss_->count(batch); }

 private:
  std::shared_ptr<const Loss> loss_ = cross_entropy_loss();
};

TEST(LrRangeTest, OfALossBelow0EndsWhereTrainingDiverges) {
  const LrRangeTest test =
      Fixture("sgd").test({.min = 1e-6, .max = 1e4, .rates = 60, .memory = 0.5},
                          {.loss = std::make_shared<NegativeLoss>()});
  EXPECT_TRUE(test.diverged);
  ASSERT_GT(test.points.size(), 30);
  EXPECT_LT(test.points.size(), 60);
  EXPECT_LT(test.points[20].smoothed, 0);
}

TEST(LrRangeTest, SameTestSameLosses) {
  Fixture fixture("sgd");
  std::vector<double> losses[2];
  for (auto& list : losses) {
    for (const auto& point : fixture.test({.rates = 20}).points) list.push_back(point.loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(LrRangeTest, WithResetEveryRateStartsFromTheSameWeights) {
  Fixture fixture("adamw");
  const LrRangeTestConfig each{.min = 1e-5, .max = 1e-1, .rates = 20, .memory = 0, .steps_each = 3};
  const LrRangeTest test = fixture.test(each);
  ASSERT_EQ(test.points.size(), 20);
  // A single rate gives the same result: preceding rates have no effect.
  const double lr = test.points[12].lr;
  const LrRangeTest alone =
      fixture.test({.min = lr, .max = lr, .rates = 1, .memory = 0, .steps_each = 3});
  EXPECT_EQ(alone.points.front().loss, test.points[12].loss);
  EXPECT_LT(test.points[19].loss, test.points[0].loss);
  EXPECT_EQ(test.points[5].smoothed, test.points[5].loss);
}

TEST(LrRangeTest, EndsAtAStopRequestAndPutsAllBack) {
  Fixture fixture("sgd");
  const auto before = copies(fixture.trainee.everything());
  int points = 0;
  const LrRangeTest test = fixture.test({.rates = 50}, {}, [&](const schedule::RangePoint&) {
    if (++points == 7) fixture.stop.request(-1);
  });
  EXPECT_TRUE(test.stopped);
  EXPECT_EQ(test.points.size(), 7);
  const auto after = copies(fixture.trainee.everything());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i]));
}

}  // namespace
}  // namespace gallop::train
