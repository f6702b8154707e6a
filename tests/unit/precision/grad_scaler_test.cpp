#include "gallop/precision/grad_scaler.h"

#include <limits>

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::precision {
namespace {

at::Tensor norm(double value) { return at::scalar_tensor(value, at::TensorOptions(c10::kDouble)); }

void step(GradScaler& scaler, double value) {
  scaler.check(norm(value));
  scaler.update();
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(GradScaler, GrowsAfterGoodStepsAndBacksOff) {
  GradScaler scaler({.initial = 8, .growth = 2, .backoff = 0.25, .interval = 2}, at::kCPU);
  step(scaler, 1);
  EXPECT_EQ(scaler.scale().item<float>(), 8);
  step(scaler, 1);
  EXPECT_EQ(scaler.scale().item<float>(), 16);
  step(scaler, 1);
  step(scaler, kInfinity);
  EXPECT_EQ(scaler.found_inf().item<float>(), 1);
  EXPECT_EQ(scaler.scale().item<float>(), 4);
  step(scaler, 1);
  EXPECT_EQ(scaler.found_inf().item<float>(), 0);
  EXPECT_EQ(scaler.scale().item<float>(), 4) << "the row of good steps starts again";
  step(scaler, kNan);
  EXPECT_EQ(scaler.skipped_steps(), 2);
}

TEST(GradScaler, ContinuesFromCopiedState) {
  const GradScalerConfig config{.initial = 8, .interval = 2};
  GradScaler first(config, at::kCPU);
  step(first, kInfinity);
  step(first, 1);
  GradScaler second(config, at::kCPU);
  const NamedTensors from = first.state();
  const NamedTensors to = second.state();
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  step(first, 1);
  step(second, 1);
  EXPECT_EQ(second.scale().item<float>(), 8);
  EXPECT_EQ(first.scale().item<float>(), 8);
  EXPECT_EQ(second.skipped_steps(), 1);
}

TEST(GradScaler, RejectsInvalidSettings) {
  for (const GradScalerConfig& config :
       {GradScalerConfig{.initial = 0}, GradScalerConfig{.growth = 1},
        GradScalerConfig{.backoff = 1}, GradScalerConfig{.backoff = 0},
        GradScalerConfig{.interval = 0}, GradScalerConfig{.initial = kNan}}) {
    EXPECT_THROW(GradScaler(config, at::kCPU), UsageError);
  }
}

}  // namespace
}  // namespace gallop::precision
