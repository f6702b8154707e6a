#include "gallop/track/run_comparison.h"

#include <limits>

#include <gtest/gtest.h>

namespace gallop::track {
namespace {

Log log_of(const std::vector<Record>& records) {
  Log log;
  log.records = records;
  return log;
}

Record step(int64_t number, double loss, double speed) {
  return {.step = number,
          .kind = "step",
          .values = {{"loss", loss}, {"samples_per_second", speed}, {"epoch", 0.5}}};
}

TEST(RunComparison, IgnoresTimes) {
  const Record end{.step = 2, .kind = "end", .values = {{"samples", 5}}};
  const Record machine{.step = 2, .kind = "system", .values = {{"cpu", 1.5}}};
  const auto same = compare_results(log_of({step(1, 0.5, 10), step(2, 0.4, 10), end}),
                                    log_of({step(1, 0.5, 20), step(2, 0.4, 5), machine}));
  EXPECT_TRUE(same.differences.empty());
  EXPECT_EQ(same.compared, 2);
  EXPECT_EQ(same.metrics, 1);
}

TEST(RunComparison, FindsTheFirstBitThatDiffers) {
  const double almost = 0.5 + std::numeric_limits<double>::epsilon();
  const auto found = compare_results(log_of({step(2, 0.4, 1), step(1, 0.5, 1)}),
                                     log_of({step(1, almost, 1), step(2, 0.3, 1)}));
  ASSERT_EQ(found.differences.size(), 2u);
  EXPECT_EQ(found.differences[0].step, 1);
  EXPECT_EQ(found.differences[0].metric, "train.loss");
  EXPECT_EQ(found.differences[0].one, 0.5);
  EXPECT_EQ(found.differences[0].other, almost);
}

TEST(RunComparison, CountsMissingValues) {
  const auto found = compare_results(log_of({step(1, 0.5, 1)}), log_of({step(3, 0.5, 1)}));
  ASSERT_EQ(found.differences.size(), 2u);
  EXPECT_FALSE(found.differences[0].other);
  EXPECT_FALSE(found.differences[1].one);
}

TEST(RunComparison, TreatsNanAsEqual) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(
      compare_results(log_of({step(1, nan, 1)}), log_of({step(1, -nan, 1)})).differences.empty());
  EXPECT_FALSE(
      compare_results(log_of({step(1, 0.0, 1)}), log_of({step(1, -0.0, 1)})).differences.empty());
}

}  // namespace
}  // namespace gallop::track
