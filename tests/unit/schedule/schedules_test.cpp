#include "gallop/schedule/schedules.h"

#include <gtest/gtest.h>

namespace gallop::schedule {
namespace {

TEST(Constant, IsOne) { EXPECT_EQ(make_constant({})->factor(0.3), 1); }

TEST(OneCycle, RisesThenFallsToTheEnd) {
  const auto schedule = make_one_cycle({.warmup = 0.25, .start = 0.04, .final = 0.01});
  EXPECT_DOUBLE_EQ(schedule->factor(0), 0.04);
  EXPECT_DOUBLE_EQ(schedule->factor(0.125), 0.52);
  EXPECT_DOUBLE_EQ(schedule->factor(0.25), 1);
  EXPECT_DOUBLE_EQ(schedule->factor(1), 0.01);
}

TEST(OneCycle, WithoutWarmUpStartsAtThePeak) {
  EXPECT_DOUBLE_EQ(make_one_cycle({.warmup = 0})->factor(0), 1);
}

TEST(Cosine, IsHalfwayInTheMiddle) {
  const auto schedule = make_cosine({.warmup = 0.2, .final = 0});
  EXPECT_DOUBLE_EQ(schedule->factor(0.1), 0.5);
  EXPECT_DOUBLE_EQ(schedule->factor(0.2), 1);
  EXPECT_NEAR(schedule->factor(0.6), 0.5, 1e-12);
  EXPECT_NEAR(schedule->factor(1), 0, 1e-12);
}

}  // namespace
}  // namespace gallop::schedule
