#include "gallop/train/holds.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::train {
namespace {

TEST(Holds, CountAtOnceWhereResultsAreThereAtOnce) {
  Holds holds(0);
  EXPECT_EQ(holds.samples_before(3), 0);
  holds.skipped(3, 10);
  EXPECT_EQ(holds.samples_before(4), 10);
  holds.skipped(4, 7);
  EXPECT_EQ(holds.samples_before(5), 17);
}

TEST(Holds, CountSoManyStepsLaterWhereTheyComeLate) {
  Holds holds(5);
  holds.skipped(3, 10);
  holds.skipped(4, 7);
  EXPECT_EQ(holds.samples_before(8), 0);
  EXPECT_EQ(holds.samples_before(9), 10);
  EXPECT_EQ(holds.samples_before(10), 17);
}

TEST(Holds, SurviveACheckpointWithWhatHasNotCountedYet) {
  Holds holds(5), again(5);
  holds.skipped(1, 3);
  holds.skipped(6, 10);
  holds.skipped(7, 12);
  EXPECT_EQ(holds.samples_before(8), 3);
  std::map<std::string, std::string> map;
  holds.write(map);
  again.skipped(99, 1);
  again.read(map);
  for (const int64_t step : {8, 11, 12, 13, 1000}) {
    EXPECT_EQ(again.samples_before(step), holds.samples_before(step)) << step;
  }
  map.erase("held.1.step");
  EXPECT_THROW(again.read(map), DataError);
}

}  // namespace
}  // namespace gallop::train
