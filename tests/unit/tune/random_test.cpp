#include "gallop/tune/samplers/random.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::tune {
namespace {

TEST(RandomPoint, HasTheCorrectFrequencies) {
  const Space space({{"steps", Interval{.low = 1, .high = 4, .step = 1, .integer = true}},
                     {"rate", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}},
                     {"name", Choices{{"1", "2", "3"}, {1, 0, 3}}},
                     {"only", Interval{}, Condition{.parent = 2, .choices = {0}}}},
                    {});
  std::vector<int> steps(5), names(3);
  int small = 0;
  constexpr int kDraws = 20'000;
  for (int64_t trial = 0; trial < kDraws; ++trial) {
    Random random(1, trial);
    const Point point = random_point(space, random);
    ASSERT_TRUE(space.contains(point));
    ++steps[static_cast<size_t>(point[0])];
    small += point[1] < 1e-2 ? 1 : 0;
    ++names[static_cast<size_t>(point[2])];
  }
  // Within five standard deviations.
  for (int step = 1; step <= 4; ++step) EXPECT_NEAR(steps[step], kDraws / 4, 310);
  EXPECT_NEAR(small, kDraws / 2, 360);
  EXPECT_NEAR(names[0], kDraws / 4, 310);
  EXPECT_EQ(names[1], 0);
}

TEST(RandomPoint, SatisfiesConstraints) {
  const Space space({{"x", Interval{}}, {"y", Interval{}}}, {"x + y < 0.5"});
  for (int64_t trial = 0; trial < 100; ++trial) {
    Random random(1, trial);
    const Point point = random_point(space, random);
    EXPECT_LT(point[0] + point[1], 0.5);
  }
  const Space none({{"x", Interval{}}}, {"x > 2"});
  Random random(1, 0);
  EXPECT_THROW(random_point(none, random), UsageError);
}

TEST(RandomSampler, DependsOnlyOnSeedAndNumber) {
  StudySettings settings{.seed = 3, .space = Space({{"x", Interval{}}}, {})};
  const auto sampler = make_random({}, settings);
  const Study study(settings);
  const Point fifth = sampler->ask(study, 5)->point;
  EXPECT_NE(sampler->ask(study, 6)->point, fifth);
  EXPECT_EQ(sampler->ask(study, 5)->point, fifth);
  settings.seed = 4;
  EXPECT_NE(make_random({}, settings)->ask(Study(settings), 5)->point, fifth);
}

}  // namespace
}  // namespace gallop::tune
