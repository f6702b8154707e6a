#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/due.h"
#include "gallop/train/train_config.h"

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

TEST(Due, ComesOnceAtEachMultiple) {
  Due due(Interval::parse("10 steps"), Length{.batches_per_epoch = 7});
  EXPECT_FALSE(due.at(9));
  EXPECT_TRUE(due.at(10));
  due.done(10);
  EXPECT_FALSE(due.at(10));
  EXPECT_FALSE(due.at(19));
  EXPECT_TRUE(due.at(20));
}

TEST(Due, CountsPartsOfEpochs) {
  Due due(Interval::parse("0.5 epochs"), Length{.batches_per_epoch = 5});
  EXPECT_FALSE(due.at(2));
  EXPECT_TRUE(due.at(3));
  due.done(3);
  EXPECT_FALSE(due.at(4));
  EXPECT_TRUE(due.at(5));
}

TEST(Due, NeverIsNever) {
  EXPECT_FALSE(Due(Interval(), Length{.batches_per_epoch = 5}).at(1'000'000));
}

}  // namespace
}  // namespace gallop::train
