#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/train_config.h"
#include "gallop/train/trigger.h"

namespace gallop::train {
namespace {

TEST(Interval, ReadsEveryUnit) {
  EXPECT_EQ(Interval::parse("500 steps").unit, Interval::Unit::kSteps);
  EXPECT_EQ(Interval::parse("1 step").count, 1);
  EXPECT_EQ(Interval::parse("0.5 epochs").count, 0.5);
  EXPECT_EQ(Interval::parse("90 s").count, 90);
  EXPECT_EQ(Interval::parse("10 min").count, 600);
  EXPECT_EQ(Interval::parse("2h").count, 7200);
  EXPECT_EQ(Interval::parse("never").unit, Interval::Unit::kNever);
}

TEST(Interval, RefusesEverythingElse) {
  for (const char* text :
       {"", "10", "steps", "0 steps", "-1 epoch", "1.5 steps", "1 week", "inf s"}) {
    EXPECT_THROW(Interval::parse(text), UsageError) << text;
  }
}

TEST(Trigger, ComesOnceAtEachMultiple) {
  Trigger trigger(Interval::parse("10 steps"), Length{.batches_per_epoch = 7});
  EXPECT_FALSE(trigger.at(9));
  EXPECT_TRUE(trigger.at(10));
  trigger.done(10);
  EXPECT_FALSE(trigger.at(10));
  EXPECT_FALSE(trigger.at(19));
  EXPECT_TRUE(trigger.at(20));
}

TEST(Trigger, CountsPartsOfEpochs) {
  Trigger trigger(Interval::parse("0.5 epochs"), Length{.batches_per_epoch = 5});
  EXPECT_FALSE(trigger.at(2));
  EXPECT_TRUE(trigger.at(3));
  trigger.done(3);
  EXPECT_FALSE(trigger.at(4));
  EXPECT_TRUE(trigger.at(5));
}

TEST(Trigger, NeverIsNever) {
  EXPECT_FALSE(Trigger(Interval(), Length{.batches_per_epoch = 5}).at(1'000'000));
}

}  // namespace
}  // namespace gallop::train
