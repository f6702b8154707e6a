#include "gallop/base/metric_order.h"

#include <limits>

#include <gtest/gtest.h>

namespace gallop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricOrder, NanAndInfinityAreNeverBetter) {
  for (const Better better : {Better::kSmaller, Better::kLarger}) {
    for (const double value : {kNan, kInfinity, -kInfinity}) {
      for (const double reference : {0.0, kNan, kInfinity, -kInfinity}) {
        EXPECT_FALSE(is_better(value, reference, better)) << value << " over " << reference;
        EXPECT_TRUE(is_better(1, value, better)) << value;
      }
    }
  }
}

TEST(MetricOrder, RequiresMoreThanTheMargin) {
  EXPECT_TRUE(is_better(0.5, 1, Better::kSmaller));
  EXPECT_FALSE(is_better(1, 1, Better::kSmaller));
  EXPECT_FALSE(is_better(0.5, 1, Better::kSmaller, 0.5));
  EXPECT_TRUE(is_better(2, 1, Better::kLarger, 0.5));
  EXPECT_FALSE(is_better(1.5, 1, Better::kLarger, 0.5));
}

}  // namespace
}  // namespace gallop
