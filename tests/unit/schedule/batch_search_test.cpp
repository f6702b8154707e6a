#include "gallop/schedule/batch_search.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/schedule/noise_scale.h"

namespace gallop::schedule {
namespace {

// A machine with a cost for each step and each sample, and memory for so many samples.
struct Machine {
  double step_seconds = 1e-3, sample_seconds = 1e-5;
  int64_t fits = 1000;
  int64_t tries = 0;

  std::optional<BatchPoint> operator()(int64_t batch) {
    tries += 1;
    if (batch > fits) return {};
    const auto count = static_cast<double>(batch);
    return BatchPoint{.batch = batch,
                      .samples_per_second = count / (step_seconds + count * sample_seconds),
                      .bytes = 5000 + 100 * batch};
  }
};

BatchSearch search(Machine& machine, BatchLimits limits) {
  limits.bytes = 5000 + 100 * machine.fits;
  return search_batches([&](int64_t batch) { return machine(batch); }, limits);
}

TEST(BatchSearch, FindsTheLargestThatFitsToAnEighth) {
  for (const int64_t fits : {1, 2, 3, 7, 8, 9, 31, 100, 1000, 12345}) {
    Machine machine{.fits = fits};
    const auto found = search(machine, {.most = 100'000});
    ASSERT_FALSE(found.points.empty()) << fits;
    EXPECT_LE(found.largest(), fits);
    EXPECT_GE(found.largest() + 1 + found.largest() / 8, fits) << fits;
    EXPECT_LE(machine.tries, 24);
    EXPECT_GT(found.too_large.value_or(fits + 1), fits);
  }
}

TEST(BatchSearch, HasNoPointsIfOneSampleDoesNotFit) {
  Machine machine{.fits = 0};
  EXPECT_TRUE(search(machine, {.most = 100}).points.empty());
}

TEST(BatchSearch, StopsDoublingWithoutGainAndExtrapolatesTheLargest) {
  // Each step costs as much as a sample: there is nothing to be gained.
  Machine machine{.step_seconds = 1e-7, .fits = 50'000};
  const auto found = search(machine, {.most = 1'000'000});
  EXPECT_LE(machine.tries, 6);
  EXPECT_GE(found.largest(), 48'000);
  EXPECT_FALSE(found.too_large);
  EXPECT_EQ(fastest_from(found.points), 8);
}

TEST(BatchSearch, SearchesForTheLargestOnlyOnRequest) {
  Machine machine{.step_seconds = 1e-7, .fits = 50'000};
  const auto found = search(machine, {.most = 1'000'000, .largest = false});
  EXPECT_EQ(machine.tries, 3);
  EXPECT_EQ(found.largest(), 32);
  Machine small{.step_seconds = 1, .fits = 100};
  const auto full = search(small, {.most = 1'000'000, .largest = false});
  EXPECT_EQ(full.largest(), 64);
  EXPECT_EQ(full.too_large, 128);
}

TEST(BatchSearch, RepeatsADisturbedMeasurement) {
  Machine machine;
  bool was_disturbed = false;
  const auto disturbed = [&](int64_t batch) {
    auto point = machine(batch);
    if (point && batch == 64 && !was_disturbed) {
      was_disturbed = true;
      point->samples_per_second /= 10;
    }
    return point;
  };
  const auto found = search_batches(disturbed, {.most = 512, .bytes = 1 << 30});
  EXPECT_TRUE(was_disturbed);
  EXPECT_EQ(found.largest(), 512);
  EXPECT_EQ(machine.tries, 8);  // 8 to 512, and 64 twice.
  for (size_t i = 1; i < found.points.size(); ++i) {
    EXPECT_GT(found.points[i].samples_per_second, found.points[i - 1].samples_per_second);
  }
}

TEST(BatchSearch, IsLimitedByTheNumberOfSamples) {
  Machine machine{.fits = 50'000};
  const auto found = search(machine, {.most = 500});
  EXPECT_EQ(found.largest(), 500);
  EXPECT_FALSE(found.too_large);
}

TEST(BatchSearch, IsLimitedByTheTimeOfAStep) {
  Machine machine{.sample_seconds = 0.01, .fits = 1'000'000};
  const auto found = search(machine, {.most = 1'000'000, .step_seconds = 2});
  EXPECT_TRUE(found.cut_short);
  EXPECT_LE(found.largest(), 201);
}

TEST(BatchSearch, SuggestsTheSmallestFastBatchUpToTheCriticalOne) {
  Machine machine{.fits = 4096};
  const auto found = search(machine, {.most = 4096});
  // 95 % of the speed of 4096, which is 1 / (1 + 100 / 4096): at 1 / (1 + 100 / b).
  EXPECT_EQ(fastest_from(found.points), 2048);
  EXPECT_EQ(suggested_batch(found, {}), 2048);
  EXPECT_EQ(suggested_batch(found, 5000.0), 2048);
  EXPECT_EQ(suggested_batch(found, 700.0), 512);
  EXPECT_EQ(suggested_batch(found, 0.3), 1);
}

// Gradients of samples with a known mean and covariance: tr(S) = 3 * 4, |G|^2 = 3 * 0.25.
TEST(NoiseScale, IsCorrectForKnownGaussians) {
  constexpr int kDimensions = 3, kSmall = 4, kParts = 8;
  std::mt19937 random(7);
  std::normal_distribution<double> gradient(0.5, 2.0);
  NoiseScale noise(kSmall, kSmall * kParts);
  for (int step = 0; step < 4000; ++step) {
    double small_square = 0, big[kDimensions] = {};
    for (int part = 0; part < kParts; ++part) {
      double mean[kDimensions] = {};
      for (int sample = 0; sample < kSmall; ++sample) {
        for (double& number : mean) number += gradient(random) / kSmall;
      }
      for (int i = 0; i < kDimensions; ++i) {
        small_square += mean[i] * mean[i] / kParts;
        big[i] += mean[i] / kParts;
      }
    }
    double big_square = 0;
    for (const double number : big) big_square += number * number;
    noise.add(small_square, big_square);
  }
  EXPECT_NEAR(noise.gradient_square(), 0.75, 0.03);
  EXPECT_NEAR(noise.variance(), 12, 0.2);
  EXPECT_NEAR(noise.batch().value(), 16, 0.7);
}

TEST(NoiseScale, IsUnknownWithoutGradientsOrSignal) {
  NoiseScale noise(1, 2);
  EXPECT_FALSE(noise.batch());
  noise.add(4, 1);  // 2 * 1 - 4 is below 0.
  EXPECT_FALSE(noise.batch());
  EXPECT_THROW(NoiseScale(2, 2), InternalError);
  EXPECT_THROW(NoiseScale(0, 2), InternalError);
}

}  // namespace
}  // namespace gallop::schedule
