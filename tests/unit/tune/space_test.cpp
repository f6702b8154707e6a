#include "gallop/tune/space.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tune/normal.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {
namespace {

std::string mistakes(std::vector<Parameter> parameters, std::vector<std::string> constraints = {}) {
  try {
    const Space space(std::move(parameters), std::move(constraints));
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

Space nested() {
  return {{{"name", Choices{{"\"mlp\"", "\"vit\"", "\"gpt\""}}},
           {"heads", Interval{.low = 1, .high = 8, .step = 1, .integer = true},
            Condition{.parent = 0, .choices = {1, 2}}},
           {"rope", Choices{{"true", "false"}}, Condition{.parent = 0, .choices = {2}}},
           {"base", Interval{.low = 10, .high = 1000, .scale = Scale::kLog},
            Condition{.parent = 2, .choices = {0}}}},
          {"heads <= 4 or name == 'gpt'"}};
}

TEST(Normal, MatchesTabulatedQuantiles) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-300), -37.0470962993612, 1e-12);
  for (double p = 0.01; p < 1; p += 0.01) EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-15);
}

TEST(Interval, MapsToItsScale) {
  const Interval rate{.low = 1e-4, .high = 1, .scale = Scale::kLog};
  EXPECT_DOUBLE_EQ(value_at(rate, coordinate(rate, 0.01)), 0.01);
  EXPECT_DOUBLE_EQ(coordinates(rate).low, std::log(1e-4));
  EXPECT_EQ(value_at(rate, 3), 1);
  EXPECT_EQ(count(rate), 0);
  EXPECT_EQ(cell(rate, 0.1).low, cell(rate, 0.1).high);
}

TEST(Interval, GivesEachStepTheSameProbability) {
  const Interval layers{.low = 2, .high = 9, .step = 3, .integer = true};
  EXPECT_EQ(count(layers), 3);
  EXPECT_EQ(coordinates(layers).low, 0.5);
  EXPECT_EQ(coordinates(layers).high, 9.5);
  EXPECT_EQ(value_at(layers, 3.4), 2);
  EXPECT_EQ(value_at(layers, 3.6), 5);
  EXPECT_EQ(value_at(layers, 100), 8);
  EXPECT_EQ(cell(layers, 5).low, 3.5);
  EXPECT_EQ(cell(layers, 5).high, 6.5);
  const Interval tenths{.low = 0, .high = 0.3, .step = 0.1};
  EXPECT_EQ(count(tenths), 4);
  // 3 * 0.1 is above 0.3.
  EXPECT_EQ(value_at(tenths, 1), 0.3);
  EXPECT_TRUE(Space({{"tenths", tenths}}, {}).contains({0.3}));
}

TEST(Interval, HasExactDecimalSteps) {
  const auto values = [](const Interval& interval) {
    std::vector<std::string> texts;
    const Space space({{"a", interval}}, {});
    for (int64_t i = 0; i < count(interval); ++i) {
      const double value = value_on_grid(interval, static_cast<double>(i));
      texts.push_back(space.value_text(0, value));
      EXPECT_EQ(value_at(interval, coordinate(interval, value)), value) << texts.back();
      EXPECT_TRUE(space.contains({value})) << texts.back();
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(values({.low = 0, .high = 1, .step = 0.1}),
            (Texts{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"}));
  EXPECT_EQ(values({.low = 0.15, .high = 0.8, .step = 0.2}),
            (Texts{"0.15", "0.35", "0.55", "0.75"}));
  EXPECT_EQ(values({.low = -0.3, .high = 0.2, .step = 0.1}),
            (Texts{"-0.3", "-0.2", "-0.1", "0", "0.1", "0.2"}));
  EXPECT_EQ(values({.low = 1e-5, .high = 8e-5, .scale = Scale::kLog, .step = 1e-5}),
            (Texts{"1e-05", "2e-05", "3e-05", "4e-05", "5e-05", "6e-05", "7e-05", "8e-05"}));
  EXPECT_EQ(values({.low = 1e15, .high = 1e15 + 2, .step = 0.5}).size(), 5u);
  EXPECT_EQ(values({.low = 0.1, .high = 1e6 + 0.1, .step = 1e5})[7], "700000.1");
}

// Studies of earlier versions have unrounded sums.
TEST(Interval, AcceptsUnroundedSteps) {
  const Space space({{"a", Interval{.low = 0, .high = 1, .step = 0.1}}}, {});
  EXPECT_TRUE(space.contains({3 * 0.1}));
  EXPECT_FALSE(space.contains({0.3001}));
}

TEST(Interval, MapsANormalDistribution) {
  const Interval spread{.low = -10, .high = 10, .scale = Scale::kNormal, .mean = 1, .deviation = 2};
  EXPECT_NEAR(coordinate(spread, 1), 0.5, 1e-15);
  EXPECT_NEAR(value_at(spread, normal_cdf(1)), 3, 1e-12);
  const Interval positive{
      .low = 1e-3, .high = 1e3, .scale = Scale::kLogNormal, .mean = 0, .deviation = 1};
  EXPECT_NEAR(value_at(positive, 0.5), 1, 1e-12);
}

TEST(Space, KnowsActiveParameters) {
  const Space space = nested();
  Point point = {0, 3, 1, 20};
  space.drop_inactive(point);
  EXPECT_EQ(point[0], 0);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(point[i]));
  EXPECT_TRUE(space.contains(point));
  EXPECT_FALSE(space.contains({0, 3, kInactive, kInactive}));
  EXPECT_FALSE(space.contains({1, kInactive, kInactive, kInactive}));
  EXPECT_TRUE(space.contains({2, 3, 0, 20}));
  EXPECT_FALSE(space.contains({2, 3, 0, 2000}));
  EXPECT_FALSE(space.contains({2, 3.5, 0, 20}));
  EXPECT_FALSE(space.contains({3, 3, 0, 20}));
}

TEST(Space, ChecksItsConstraints) {
  const Space space = nested();
  EXPECT_TRUE(space.allows({1, 4, kInactive, kInactive}));
  EXPECT_FALSE(space.allows({1, 5, kInactive, kInactive}));
  EXPECT_TRUE(space.allows({2, 5, 1, kInactive}));
  EXPECT_TRUE(space.allows({0, kInactive, kInactive, kInactive}));
}

TEST(Space, WritesAndReadsValues) {
  const Space space = nested();
  EXPECT_EQ(space.value_text(0, 1), "\"vit\"");
  EXPECT_EQ(space.value_text(1, 3), "3");
  EXPECT_EQ(space.value_text(3, 12.5), "12.5");
  EXPECT_EQ(space.value_text(3, kInactive), "null");
  EXPECT_EQ(space.parse_value(0, "\"gpt\""), 2);
  EXPECT_EQ(space.parse_value(1, "3.0"), 3);
  EXPECT_EQ(space.parse_value(2, "false"), 1);
  EXPECT_FALSE(space.parse_value(1, "3.5"));
  EXPECT_FALSE(space.parse_value(1, "9"));
  EXPECT_FALSE(space.parse_value(1, "x"));
  EXPECT_FALSE(space.parse_value(0, "\"cnn\""));
}

TEST(Space, SupportsVeryFineSteps) {
  // The logarithm of 2^53 has no digits left for a step of 1.
  const Interval fine{.low = 1, .high = 0x1p53, .scale = Scale::kLog, .step = 1, .integer = true};
  // Beyond 9 deviations the share of a normal distribution is 1.
  const Interval wide{.low = -100, .high = 100, .scale = Scale::kNormal, .step = 1};
  const Space space({{"fine", fine}, {"wide", wide}}, {});
  for (const double value : {0x1p53 - 1, 1'234'567'890'123'457.0, 3.0}) {
    const Point point{value, 50};
    EXPECT_TRUE(space.contains(point)) << value;
    EXPECT_EQ(space.parse_value(0, space.value_text(0, value)), value);
  }
  EXPECT_EQ(space.parse_value(1, "-77"), -77);
  EXPECT_FALSE(space.contains({2.5, 50}));
  Random random(1, 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(space.contains({random_value(space[0], random), random_value(space[1], random)}));
  }
}

TEST(Space, RejectsUnrepresentableValues) {
  EXPECT_EQ(mistakes({{"a", Interval{.low = 0, .high = 1e20, .step = 1, .integer = true}}}),
            "a: from 0 to 1e+20: integers must be at most 2^53");
  EXPECT_EQ(mistakes({{"a", Interval{.low = 0, .high = 0x1p53, .step = 1, .integer = true}}}), "");
  EXPECT_EQ(mistakes({{"a", Interval{.low = -1e308, .high = 1e308}}}),
            "a: from -1e+308 to 1e+308: the bounds are too far apart");
  EXPECT_EQ(mistakes({{"a", Interval{.low = 0, .high = 1, .step = 1e-20}}}),
            "a: step 1e-20: too small from 0 to 1");
  EXPECT_EQ(mistakes({{"a", Interval{.low = 20, .high = 30, .scale = Scale::kNormal}}}),
            "a: from 20 to 30: no probability mass between them on the scale 'normal'");
  EXPECT_EQ(mistakes({{"a", Interval{.scale = Scale::kNormal, .mean = INFINITY}}}),
            "a: mean inf: must be finite");
}

TEST(Space, RoundTripsThroughJson) {
  const Space space = nested();
  EXPECT_EQ(Space::from_json(space.to_json()).to_json(), space.to_json());
  EXPECT_THROW(Space::from_json("{}"), DataError);
  EXPECT_THROW(Space::from_json("{"), DataError);
  EXPECT_THROW(Space::from_json(R"({"parameters": [], "constraints": []})"), DataError);
}

TEST(Space, ReportsAllMistakes) {
  EXPECT_EQ(mistakes({}), "parameters: there are no parameters");
  EXPECT_EQ(mistakes({{"lr", Interval{.low = 0, .high = 1, .scale = Scale::kLog}},
                      {"width", Interval{.low = 8, .high = 4}},
                      {"name", Choices{}},
                      {"lr", Choices{{"1", "1"}}}},
                     {"depth < 2"}),
            "lr: from 0 to 1: a logarithmic scale requires values above 0\n"
            "width: from 8 to 4: the lower bound is above the upper\n"
            "name: there are no values to choose from\n"
            "lr: duplicate name\n"
            "depth < 2: there is no parameter 'depth'");
  EXPECT_EQ(mistakes({{"a", Interval{.low = 0, .high = 1, .step = 2}}}),
            "a: step 2 is wider than from 0 to 1");
  EXPECT_EQ(
      mistakes(
          {{"a", Interval{.low = 0, .high = 4, .scale = Scale::kLog, .step = 1, .integer = true}}}),
      "a: from 0 to 4 in steps of 1: a logarithmic scale requires values above half a step");
  EXPECT_EQ(mistakes({{"a", Choices{{"1", "2"}, {1}}}}), "a: 1 weights for 2 choices");
  EXPECT_EQ(mistakes({{"a", Choices{{"1", "2"}, {0, 0}}}}), "a: all weights are 0");
  EXPECT_EQ(mistakes({{"a", Choices{{"1"}}, Condition{.parent = 0, .choices = {0}}}}),
            "a: its condition refers to a later parameter");
}

}  // namespace
}  // namespace gallop::tune
