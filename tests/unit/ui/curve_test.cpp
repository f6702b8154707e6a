#include "gallop/ui/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "unit/base/error_of.h"

namespace gallop::ui {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> some_values(size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(std::sin(static_cast<double>(i * i % 1009)) + 1e-3 * static_cast<double>(i));
  }
  return values;
}

// The definition of the recursion: weights w^(n-1), ..., w, 1 over their sum.
double weighted_mean(const std::vector<double>& values, size_t end, double weight) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < end; ++i) {
    const double share = std::pow(weight, static_cast<double>(end - 1 - i));
    sum += share * values[i];
    weights += share;
  }
  return sum / weights;
}

// TensorBoard's classicSmoothing, step by step.
std::vector<double> as_tensorboard(const std::vector<double>& values, double weight) {
  double last = 0, count = 0;
  std::vector<double> result;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      result.push_back(value);
      continue;
    }
    last = last * weight + (1 - weight) * value;
    ++count;
    result.push_back(last / (weight == 1 ? 1 : 1 - std::pow(weight, count)));
  }
  return result;
}

TEST(Smoothing, IsTheWeightedMeanOfAllPrecedingValues) {
  const auto values = some_values(200);
  for (const double weight : {0.1, 0.6, 0.99}) {
    const auto smooth = smoothed(values, weight);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(smooth[i], weighted_mean(values, i + 1, weight), 1e-12);
    }
  }
}

TEST(Smoothing, IsBitIdenticalToTensorBoard) {
  auto values = some_values(3000);
  values[7] = kNan;
  values[100] = kInfinity;
  for (const double weight : {0.0, 0.3, 0.6, 0.9, 0.999, 1.0}) {
    const auto smooth = smoothed(values, weight), expected = as_tensorboard(values, weight);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(smooth[i]));
      } else {
        EXPECT_EQ(smooth[i], expected[i]) << i;
      }
    }
  }
  EXPECT_EQ(smoothed(std::vector{1.0, 2.0}, 7)[1], smoothed(std::vector{1.0, 2.0}, 1)[1]);
}

TEST(Smoothing, PreservesAConstant) {
  // 0.1 would not come back from the recursion.
  EXPECT_EQ(smoothed(std::vector<double>(9, 0.1), 0.6), std::vector<double>(9, 0.1));
  EXPECT_TRUE(smoothed(std::vector<double>(), 0.6).empty());
}

TEST(Reduction, KeepsAllOfFewPoints) { EXPECT_EQ(reduced(some_values(50), 50).size(), 50); }

TEST(Reduction, KeepsEverySpikeAndBothEnds) {
  auto values = some_values(100'000);
  values[31'415] = 1e6;
  values[27'182] = -1e6;
  const auto kept = reduced(values, 500);
  EXPECT_LE(kept.size(), 500);
  EXPECT_GE(kept.size(), 450);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  const std::set<size_t> places(kept.begin(), kept.end());
  EXPECT_EQ(places.size(), kept.size());
  for (const size_t place : {size_t{0}, values.size() - 1, size_t{31'415}, size_t{27'182}}) {
    EXPECT_TRUE(places.contains(place)) << place;
  }
}

// Any part of the drawing looks the same as with all points: directly from the definition.
TEST(Reduction, KeepsMinimumAndMaximumOfEachPart) {
  const auto values = some_values(10'000);
  constexpr size_t kPoints = 202, kParts = 100;
  const auto kept = reduced(values, kPoints);
  for (size_t part = 0; part < kParts; ++part) {
    const size_t begin = 1 + 9'998 * part / kParts, end = 1 + 9'998 * (part + 1) / kParts;
    double least = kInfinity, most = -kInfinity;
    for (const size_t place : kept) {
      if (place < begin || place >= end) continue;
      least = std::min(least, values[place]);
      most = std::max(most, values[place]);
    }
    const auto [low, high] = std::minmax_element(values.begin() + static_cast<long>(begin),
                                                 values.begin() + static_cast<long>(end));
    EXPECT_EQ(least, *low);
    EXPECT_EQ(most, *high);
  }
}

TEST(Reduction, KeepsAGap) {
  auto values = some_values(10'000);
  values[5'000] = kNan;
  values[7'000] = kInfinity;
  const auto kept = reduced(values, 300);
  EXPECT_LE(kept.size(), 300);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), size_t{5'000}), 1);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), size_t{7'000}), 1);
  EXPECT_LE(reduced(std::vector<double>(1'000, kNan), 100).size(), 100);
}

TEST(Band, IsMeanAndDeviationAtEachStep) {
  const Band band = band_of({{{0, 10}, {0, 10}}, {{0, 5, 10}, {2, 2, 2}}, {{5, 20}, {8, 8}}});
  EXPECT_EQ(band.x, (std::vector<double>{0, 5, 10, 20}));
  // At 5: 5 (between 0 and 10), 2 and 8, whose deviation is 3.
  EXPECT_EQ(band.mean, (std::vector<double>{1, 5, 20.0 / 3, 8}));
  EXPECT_DOUBLE_EQ(band.low[1], 2);
  EXPECT_DOUBLE_EQ(band.high[1], 8);
  EXPECT_EQ(band.least, (std::vector<double>{0, 2, 2, 8}));
  EXPECT_EQ(band.most, (std::vector<double>{2, 8, 10, 8}));
  // One line alone has no deviation, and no line goes beyond its ends.
  EXPECT_EQ(band.low[3], 8);
  EXPECT_DOUBLE_EQ(band.high[0], 1 + std::sqrt(2));
}

TEST(Band, OmitsNonFiniteValues) {
  const Band band = band_of({{{0, 1, 2}, {1, kNan, 3}}, {{0, 1, 2}, {kInfinity, 4, 5}}});
  EXPECT_EQ(band.x, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(band.mean, (std::vector<double>{1, 3, 4}));
  EXPECT_TRUE(band_of({}).x.empty());
}

TEST(Band, HandlesClocksThatWereSetBack) {
  const Band band = band_of({{{10, 20, 5, 15}, {1, 2, 3, 4}}, {{5, 20}, {0, 30}}});
  EXPECT_EQ(band.x, (std::vector<double>{5, 10, 15, 20}));
  EXPECT_EQ(band.mean, (std::vector<double>{1.5, 5.5, 12, 16}));
}

TEST(CurveAxis, IsOneOfFive) {
  EXPECT_EQ(parse_axis("relative"), CurveAxis::kRelative);
  EXPECT_STREQ(axis_name(CurveAxis::kTokens), "tokens");
  EXPECT_EQ(error_of([] { parse_axis("epoch"); }),
            "'epoch' is not an axis; valid are step, wall, relative, samples and tokens");
}

}  // namespace
}  // namespace gallop::ui
