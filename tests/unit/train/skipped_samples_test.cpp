#include "gallop/train/skipped_samples.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::train {
namespace {

TEST(SkippedSamples, CountAtOnceWhereResultsAreThereAtOnce) {
  SkippedSamples skipped_samples(0);
  EXPECT_EQ(skipped_samples.samples_before(3), 0);
  skipped_samples.skipped(3, 10);
  EXPECT_EQ(skipped_samples.samples_before(4), 10);
  skipped_samples.skipped(4, 7);
  EXPECT_EQ(skipped_samples.samples_before(5), 17);
}

TEST(SkippedSamples, CountSoManyStepsLaterWhereTheyComeLate) {
  SkippedSamples skipped_samples(5);
  skipped_samples.skipped(3, 10);
  skipped_samples.skipped(4, 7);
  EXPECT_EQ(skipped_samples.samples_before(8), 0);
  EXPECT_EQ(skipped_samples.samples_before(9), 10);
  EXPECT_EQ(skipped_samples.samples_before(10), 17);
}

TEST(SkippedSamples, SurviveACheckpointWithWhatHasNotCountedYet) {
  SkippedSamples skipped_samples(5), again(5);
  skipped_samples.skipped(1, 3);
  skipped_samples.skipped(6, 10);
  skipped_samples.skipped(7, 12);
  EXPECT_EQ(skipped_samples.samples_before(8), 3);
  std::map<std::string, std::string> map;
  skipped_samples.write(map);
  again.skipped(99, 1);
  again.read(map);
  for (const int64_t step : {8, 11, 12, 13, 1000}) {
    EXPECT_EQ(again.samples_before(step), skipped_samples.samples_before(step)) << step;
  }
  map.erase("held.1.step");
  EXPECT_THROW(again.read(map), DataError);
}

}  // namespace
}  // namespace gallop::train
