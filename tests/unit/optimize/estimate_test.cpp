#include "gallop/optimize/estimate.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace gallop::optimize {
namespace {

// Values of scipy.stats.t.ppf(0.995, n).
TEST(Estimate, HasStudentsQuantiles) {
  EXPECT_NEAR(student_t(1), 63.657, 1e-3);
  EXPECT_NEAR(student_t(4), 4.6041, 1e-3);
  EXPECT_NEAR(student_t(20), 2.8453, 1e-3);
  EXPECT_NEAR(student_t(21), 2.8314, 1e-3);
  EXPECT_NEAR(student_t(60), 2.6603, 1e-3);
  EXPECT_NEAR(student_t(100000), 2.5758, 1e-3);
  EXPECT_TRUE(std::isinf(student_t(0)));
}

TEST(Estimate, OfMeans) {
  // The standard error is 1 / sqrt(5) * sqrt(2.5) = 0.7071.
  const Estimate mean = mean_of(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(mean.value, 3);
  EXPECT_NEAR(mean.high - mean.value, 4.6041 * std::sqrt(0.5), 1e-3);
  EXPECT_EQ(mean.rounds, 5);
  EXPECT_TRUE(std::isinf(mean_of(std::vector<double>{1}).high));
}

TEST(Estimate, OfRatiosIsGeometric) {
  const Estimate ratio = ratio_of(std::vector<double>{0.5, 2, 0.5, 2});
  EXPECT_DOUBLE_EQ(ratio.value, 1);
  EXPECT_NEAR(ratio.low * ratio.high, 1, 1e-12);
  EXPECT_EQ(ratio_of(std::vector<double>{1.5}).low, 0);
}

}  // namespace
}  // namespace gallop::optimize
