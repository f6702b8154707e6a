#include "gallop/tune/samplers/grid.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

Interval steps(double low, double high) {
  return {.low = low, .high = high, .step = 1, .integer = true};
}

std::string text_of(const Space& space, const Point& point) {
  std::string text;
  for (size_t i = 0; i < point.size(); ++i) {
    text += (i == 0 ? "" : " ") + space.value_text(i, point[i]);
  }
  return text;
}

/// All points of a grid in order, each from a new sampler.
std::vector<std::string> walk(const Space& space, const GridConfig& config, uint64_t seed = 7) {
  StudySettings settings = TestStudy::settings_of(space);
  settings.seed = seed;
  TestStudy test(settings);
  std::vector<std::string> points;
  for (;;) {
    const auto sampler = make_grid(config, settings);
    const auto proposal = sampler->ask(test.study, static_cast<int64_t>(points.size()));
    EXPECT_EQ(sampler->is_exhausted(test.study), !proposal);
    if (!proposal) return points;
    EXPECT_TRUE(space.contains(proposal->point));
    points.push_back(text_of(space, proposal->point));
    test.start(proposal->point);
  }
}

TEST(GridSampler, TriesEachCombinationOnce) {
  const Space space({{"depth", steps(1, 3)}, {"kind", Choices{{"\"a\"", "\"b\""}}}}, {});
  EXPECT_EQ(
      walk(space, {.points = {}, .shuffle = false}),
      (std::vector<std::string>{"1 \"a\"", "1 \"b\"", "2 \"a\"", "2 \"b\"", "3 \"a\"", "3 \"b\""}));
}

TEST(GridSampler, HasExactDecimalValues) {
  using Texts = std::vector<std::string>;
  const Space steps({{"a", Interval{.low = 0, .high = 1, .step = 0.1}}}, {"a <= 0.3"});
  EXPECT_EQ(walk(steps, {.points = {}, .shuffle = false}), (Texts{"0", "0.1", "0.2", "0.3"}));
  const Space points({{"a", Interval{.low = 0.1, .high = 0.5}}}, {"a <= 0.3"});
  EXPECT_EQ(walk(points, {.points = 5, .shuffle = false}), (Texts{"0.1", "0.2", "0.3"}));
  const Space powers({{"a", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}}}, {});
  EXPECT_EQ(walk(powers, {.points = 5, .shuffle = false}),
            (Texts{"0.0001", "0.001", "0.01", "0.1", "1"}));
  const auto walk_powers = [](double low, double high) {
    const Space space({{"a", Interval{.low = low, .high = high, .scale = Scale::kLog}}}, {});
    return walk(space, {.points = 5, .shuffle = false});
  };
  EXPECT_EQ(walk_powers(1e-4, 10).back(), "10");
  EXPECT_EQ(walk_powers(1e-5, 0.1), (Texts{"1e-05", "0.0001", "0.001", "0.01", "0.1"}));
  EXPECT_EQ(walk_powers(0.1234567890123456, 0.7654321098765432).front(), "0.1234567890123456");
}

// From an earlier version, which did not round sums.
TEST(GridSampler, DoesNotRepeatDifferentlyRoundedValues) {
  const Space space({{"a", Interval{.low = 0, .high = 0.4, .step = 0.1}}}, {});
  TestStudy test(TestStudy::settings_of(space));
  for (const double value : {0.0, 0.1, 0.2, 3 * 0.1}) test.start({value});
  const auto sampler = make_grid({.points = {}, .shuffle = false}, test.study.settings());
  EXPECT_EQ(sampler->ask(test.study, 4)->point, (Point{0.4}));
}

TEST(GridSampler, ShufflesBySeed) {
  const Space space({{"depth", steps(1, 5)}, {"width", steps(1, 5)}}, {});
  const auto plain = walk(space, {.points = {}, .shuffle = false});
  const auto seventh = walk(space, {}, 7), eighth = walk(space, {}, 8);
  EXPECT_NE(seventh, plain);
  EXPECT_NE(seventh, eighth);
  EXPECT_EQ(walk(space, {}, 7), seventh);
  const std::set<std::string> all(plain.begin(), plain.end());
  EXPECT_EQ(all.size(), 25);
  EXPECT_EQ(std::set<std::string>(seventh.begin(), seventh.end()), all);
  EXPECT_EQ(seventh.size(), 25);
}

TEST(GridSampler, OmitsInactiveParameters) {
  const Space space({{"model", Choices{{"0", "1", "2"}}},
                     {"depth", steps(1, 2), Condition{0, {1, 2}}},
                     {"norm", Choices{{"0", "1"}}, Condition{0, {2}}},
                     {"scale", steps(1, 3), Condition{2, {1}}},
                     {"bias", Choices{{"true"}}}},
                    {});
  EXPECT_EQ(walk(space, {.points = {}, .shuffle = false}),
            (std::vector<std::string>{"0 null null null true", "1 1 null null true",
                                      "1 2 null null true", "2 1 0 null true", "2 1 1 1 true",
                                      "2 1 1 2 true", "2 1 1 3 true", "2 2 0 null true",
                                      "2 2 1 1 true", "2 2 1 2 true", "2 2 1 3 true"}));
}

TEST(GridSampler, SatisfiesConstraintsAndWeights) {
  const Space space({{"x", steps(1, 3)}, {"y", Choices{{"1", "2", "3"}, {1, 0, 1}}}}, {"x <= y"});
  EXPECT_EQ(walk(space, {.points = {}, .shuffle = false}),
            (std::vector<std::string>{"1 1", "1 3", "2 3", "3 3"}));
}

TEST(GridSampler, DividesIntervalsOnTheirScale) {
  const Space space({{"rate", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}}}, {});
  const StudySettings settings = TestStudy::settings_of(space);
  TestStudy test(settings);
  const auto sampler = make_grid({.points = 5, .shuffle = false}, settings);
  for (const double rate : {1e-4, 1e-3, 1e-2, 1e-1, 1.0}) {
    const auto proposal = sampler->ask(test.study, 0);
    ASSERT_TRUE(proposal);
    EXPECT_NEAR(proposal->point[0] / rate, 1, 1e-12);
    test.start(proposal->point);
  }
  EXPECT_TRUE(sampler->is_exhausted(test.study));
}

TEST(GridSampler, SkipsExistingPoints) {
  const Space space({{"x", steps(1, 4)}}, {});
  const StudySettings settings = TestStudy::settings_of(space);
  TestStudy test(settings);
  test.start({3});
  const auto sampler = make_grid({.points = {}, .shuffle = false}, settings);
  for (const double x : {1, 2, 4}) {
    const auto proposal = sampler->ask(test.study, 0);
    ASSERT_TRUE(proposal);
    EXPECT_EQ(proposal->point[0], x);
    test.start(proposal->point);
  }
  EXPECT_TRUE(sampler->is_exhausted(test.study));
}

TEST(GridSampler, RejectsUncountableSpaces) {
  const auto refusal = [](const Space& space) -> std::string {
    try {
      make_grid({}, TestStudy::settings_of(space));
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(refusal(Space({{"lr", Interval{}}, {"depth", steps(1, 2)}, {"wd", Interval{}}}, {})),
            "a grid needs a step, or a number of points, for lr, wd");
  std::vector<Parameter> many;
  for (int i = 0; i < 20; ++i) many.push_back({"x" + std::to_string(i), steps(1, 10)});
  EXPECT_EQ(refusal(Space(many, {})), "the grid has 1e+20 points");
  EXPECT_EQ(refusal(Space({{"seed", steps(0, 4294967295)}}, {})),
            "the grid has 4294967296 values of seed; at most 1000000 are supported");
  EXPECT_EQ(refusal(Space({{"one", Interval{.low = 2, .high = 2}}}, {})), "");
}

// Enumerating all of it would take months.
TEST(GridSampler, StopsIfConstraintsExcludeNearlyEverything) {
  const Space space({{"a", steps(1, 100'000)}, {"b", steps(1, 100'000)}, {"c", steps(1, 100'000)}},
                    {"a + b + c < 3"});
  const StudySettings settings = TestStudy::settings_of(space);
  const Study study(settings);
  const auto sampler = make_grid({}, settings);
  EXPECT_THROW(sampler->ask(study, 0), UsageError);
  EXPECT_FALSE(sampler->is_exhausted(study));
}

}  // namespace
}  // namespace gallop::tune
