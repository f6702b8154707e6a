#include "gallop/schedule/lr_suggestion.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace gallop::schedule {
namespace {

// A curve as of a range test: flat, a fall around `middle`, and a rise after `end`.
std::vector<RangePoint> curve(double middle, double end) {
  std::vector<RangePoint> points;
  for (const double lr : rates_between(1e-6, 10, 100, false)) {
    const double fall = 1 / (1 + std::pow(lr / middle, 1.5));
    const double rise = std::pow(lr / end, 3);
    points.push_back({.lr = lr, .loss = 1 + fall + rise, .smoothed = 1 + fall + rise});
  }
  return points;
}

std::optional<double> suggestion(const std::string& rule, std::span<const RangePoint> points) {
  for (const LrRule& known : lr_rules()) {
    if (rule == known.name) return known.suggest(points);
  }
  ADD_FAILURE() << "no rule " << rule;
  return {};
}

TEST(SmoothedLoss, IsBiasCorrected) {
  SmoothedLoss smoothed(0.9);
  EXPECT_DOUBLE_EQ(smoothed.add(4), 4);
  EXPECT_DOUBLE_EQ(smoothed.add(2), (0.1 * 2 + 0.09 * 4) / 0.19);
  SmoothedLoss plain(0);
  EXPECT_EQ(plain.add(4), 4);
  EXPECT_EQ(plain.add(2), 2);
}

TEST(LrRates, IncreaseGeometricallyOrLinearly) {
  const auto rates = rates_between(1e-3, 10, 5, false);
  ASSERT_EQ(rates.size(), 5);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(rates[i], std::pow(10, static_cast<double>(i) - 3), 1e-12);
  EXPECT_EQ(rates_between(1, 3, 3, true), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(rates_between(1, 3, 1, true), (std::vector<double>{1}));
}

// The steepest place of the curve (its derivative by the logarithm of the rate is least where
// (lr / middle)^1.5 = 1) and its lowest place are known.
TEST(LrSuggestion, RulesFindTheKnownRates) {
  const auto points = curve(1e-3, 1);
  EXPECT_NEAR(std::log10(*suggestion("steepest", points)), -3, 0.1);
  const double lowest = 10 * *suggestion("minimum/10", points);
  EXPECT_GT(lowest, 1e-2);
  EXPECT_LT(lowest, 1);
  EXPECT_NEAR(std::log10(*suggestion("valley", points)),
              (std::log10(1e-6) + 0.7 + std::log10(lowest)) / 2, 0.4);
  EXPECT_LT(*suggestion("slide", points), lowest);
}

// The loss rises soon after its fall, or much later.
TEST(LrSuggestion, BetweenIsTheGeometricMean) {
  for (const double end : {3e-3, 1.0}) {
    const auto points = curve(1e-3, end);
    const double steepest = *suggestion("steepest", points);
    const double tenth = *suggestion("minimum/10", points);
    EXPECT_EQ(tenth < steepest, end < 1);
    EXPECT_DOUBLE_EQ(*suggestion("between", points), std::sqrt(steepest * tenth));
  }
  // A fall only within the first tenth, which "steepest" ignores.
  std::vector<RangePoint> early;
  for (const double lr : rates_between(1e-6, 1, 50, false)) {
    const double loss = early.size() < 4 ? 2 - 0.1 * static_cast<double>(early.size()) : 3 + lr;
    early.push_back({.lr = lr, .loss = loss, .smoothed = loss});
  }
  ASSERT_FALSE(suggestion("steepest", early));
  EXPECT_EQ(suggestion("between", early), suggestion("minimum/10", early));
}

TEST(LrSuggestion, ValleyIsRobustToNoise) {
  auto points = curve(1e-3, 1);
  const double clean = *suggestion("valley", points);
  for (size_t i = 0; i < points.size(); ++i) points[i].smoothed += i % 2 == 0 ? 0.004 : -0.004;
  EXPECT_NEAR(std::log10(*suggestion("valley", points)), std::log10(clean), 0.4);
}

TEST(LrSuggestion, ACurveThatNeverFallsHasNone) {
  std::vector<RangePoint> rising;
  for (const double lr : rates_between(1e-6, 1, 50, false)) {
    rising.push_back({.lr = lr, .loss = 1 + lr, .smoothed = 1 + lr});
  }
  for (const char* rule : {"between", "valley", "steepest", "minimum/10"}) {
    EXPECT_FALSE(suggestion(rule, rising)) << rule;
  }
  EXPECT_FALSE(range_of_fall(rising));
}

TEST(LrSuggestion, HandlesFewPoints) {
  const auto points = curve(1e-3, 1);
  for (size_t count = 0; count < 12; ++count) {
    const auto few = std::span(points).subspan(45, count);
    for (const LrRule& rule : lr_rules()) {
      const auto found = rule.suggest(few);
      if (!found) continue;
      EXPECT_GT(*found, 0) << rule.name << " of " << count;
    }
    range_of_fall(few);
  }
}

TEST(LrRange, IsWhereTheLossFalls) {
  const auto points = curve(1e-3, 1);
  const auto range = range_of_fall(points);
  ASSERT_TRUE(range);
  // A tenth is done where (lr / middle)^1.5 = 1 / 9, nine tenths where it is about 9.
  EXPECT_NEAR(std::log10(range->min), -3 - std::log10(9) / 1.5, 0.15);
  EXPECT_NEAR(std::log10(range->max), -3 + std::log10(9) / 1.5, 0.15);
}

}  // namespace
}  // namespace gallop::schedule
