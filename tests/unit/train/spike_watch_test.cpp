#include "gallop/train/spike_watch.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/train_config.h"

namespace gallop::train {
namespace {

double value_of(const SpikeWatch& watch, size_t number) {
  return watch.state()[number].tensor.item<double>();
}

at::Tensor fp64(double number) { return at::scalar_tensor(number, at::kDouble); }

// Each loss has weight (1 - 1/window)^age, except the first ones, which are weighted equally.
TEST(SpikeWatch, HasTheMeanAndDeviationOfItsFormula) {
  constexpr int kWindow = 8, kLosses = 40;
  SpikeWatch watch({.action = "skip", .threshold = 100, .window = kWindow}, at::kCPU);
  std::mt19937 random(1);
  std::normal_distribution<double> normal(2, 0.5);
  std::vector<double> losses, weights;
  for (int i = 0; i < kLosses; ++i) {
    losses.push_back(normal(random));
    EXPECT_EQ(watch.note(fp64(losses.back())).item<double>(), 0);
    const double share = std::max(1.0 / (i + 1), 1.0 / kWindow);
    for (double& weight : weights) weight *= 1 - share;
    weights.push_back(share);
    double sum = 0, mean = 0, variance = 0;
    for (int j = 0; j <= i; ++j) sum += weights[j];
    for (int j = 0; j <= i; ++j) mean += weights[j] * losses[j];
    for (int j = 0; j <= i; ++j) variance += weights[j] * std::pow(losses[j] - mean, 2);
    EXPECT_NEAR(sum, 1, 1e-12);
    if (i < kWindow) {
      EXPECT_NEAR(weights.front(), 1.0 / (i + 1), 1e-12);
    }
    EXPECT_NEAR(value_of(watch, 0), mean, 1e-12);
    EXPECT_NEAR(value_of(watch, 1), variance, 1e-12);
    EXPECT_EQ(value_of(watch, 2), i + 1);
  }
}

TEST(SpikeWatch, TellsWhatLiesFarAboveAndForgetsIt) {
  SpikeWatch watch({.action = "skip", .threshold = 3, .window = 4}, at::kCPU);
  const auto note = [&](double loss) { return watch.note(fp64(loss)).item<double>() != 0; };
  for (const double loss : {1.0, 1.2, 50.0}) EXPECT_FALSE(note(loss)) << "one of the first";
  SpikeWatch steady({.action = "skip", .threshold = 3, .window = 4}, at::kCPU);
  const auto next = [&](double loss) { return steady.note(fp64(loss)).item<double>() != 0; };
  for (const double loss : {1.0, 1.2, 0.9, 1.1}) EXPECT_FALSE(next(loss));
  const double mean = value_of(steady, 0), deviation = std::sqrt(value_of(steady, 1));
  EXPECT_TRUE(next(mean + 3.001 * deviation));
  EXPECT_TRUE(next(1e30));
  EXPECT_FALSE(next(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(value_of(steady, 0), mean);
  EXPECT_EQ(value_of(steady, 2), 4);
  EXPECT_FALSE(next(mean + 2.999 * deviation));
  EXPECT_FALSE(next(-100)) << "far below";
}

std::string message_of(const TrainConfig& config) {
  try {
    check(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(SpikeWatch, RefusesContradictions) {
  TrainConfig config;
  EXPECT_EQ(message_of(config), "no UsageError");
  config.spikes.window = 50;
  EXPECT_NE(message_of(config).find("its action is none"), std::string::npos);
  config.spikes.action = "skip";
  EXPECT_EQ(message_of(config), "no UsageError");
  config.spikes.action = "rewind";
  for (const char* every : {"10 min", "never"}) {
    config.checkpoint_every = every;
    EXPECT_NE(message_of(config).find("give train.checkpoint_every in steps or epochs"),
              std::string::npos);
  }
  for (const char* every : {"10 steps", "0.5 epochs"}) {
    config.checkpoint_every = every;
    EXPECT_EQ(message_of(config), "no UsageError");
  }
}

}  // namespace
}  // namespace gallop::train
