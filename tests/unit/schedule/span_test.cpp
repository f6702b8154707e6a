#include "gallop/schedule/span.h"

#include <gtest/gtest.h>

namespace gallop::schedule {
namespace {

TEST(Span, ParsesFractionsEpochsAndSteps) {
  const Span share = Span::parse("0.25"), epochs = Span::parse("1.5 epochs"),
             step = Span::parse("1 step");
  EXPECT_EQ(share.count, 0.25);
  EXPECT_EQ(share.unit, Span::Unit::kShare);
  EXPECT_EQ(epochs.count, 1.5);
  EXPECT_EQ(epochs.unit, Span::Unit::kEpochs);
  EXPECT_EQ(step.unit, Span::Unit::kSteps);
}

TEST(Span, RejectsInvalidLengths) {
  for (const char* text : {"", "1.2", "-0.1", "-3 epochs", "half", "3 hours", "2.5 steps", "nan",
                           "inf", "3  epochs", "3 epochs ", "1e400"}) {
    EXPECT_THROW(Span::parse(text), UsageError) << text;
  }
}

TEST(RunLength, WholeBatchesGiveExactProgress) {
  const RunLength length{
      .samples = 90 * 50'000., .samples_per_epoch = 50'000, .batch = 125, .batches_per_epoch = 400};
  for (int step = 0; step <= 36'000; step += 7) {
    EXPECT_EQ(length.share_of({static_cast<double>(step), Span::Unit::kSteps}),
              step * 125. / length.samples);
  }
  EXPECT_EQ(length.share_of("30 epochs"), 30 * 50'000. / length.samples);
}

TEST(RunLength, AShortLastBatchCountsItsSamples) {
  const RunLength length{
      .samples = 20, .samples_per_epoch = 10, .batch = 4, .batches_per_epoch = 3};
  EXPECT_EQ(length.share_of("2 steps"), 0.4);
  EXPECT_EQ(length.share_of("3 steps"), 0.5);
  EXPECT_EQ(length.share_of("4 steps"), 0.7);
  EXPECT_EQ(length.part(0.5).share_of("1 epoch"), 1);
}

TEST(RunLength, CountsUpdates) {
  const RunLength length{
      .samples = 20, .samples_per_epoch = 10, .batch = 4, .batches_per_epoch = 3};
  EXPECT_EQ(length.steps_of("1"), 6);
  EXPECT_EQ(length.steps_of("0.5"), 3);
  EXPECT_EQ(length.steps_of("0.7"), 4);
  EXPECT_EQ(length.steps_of("1 epoch"), 3);
  EXPECT_EQ(length.steps_of("5 steps"), 5);
  EXPECT_EQ(length.steps_of("9 epochs"), 27);
  EXPECT_EQ(length.steps_of("0"), 0);
  // As counted by the run: 16 batches per epoch.
  const RunLength ragged{.samples = 1000. * 7 + 64 * 3,
                         .samples_per_epoch = 1000,
                         .batch = 64,
                         .batches_per_epoch = 16};
  EXPECT_EQ(ragged.steps_of("1"), 7 * 16 + 3);
  EXPECT_THROW(RunLength().steps_of("0.5"), UnknownLength);
}

TEST(RunLength, ReportsUnknownLengths) {
  const RunLength length{.samples = 9, .samples_per_epoch = 1};
  EXPECT_EQ(length.share_of("3 epochs"), 1. / 3);
  EXPECT_THROW(length.share_of("3 steps"), UnknownLength);
  EXPECT_THROW(RunLength().share_of("3 epochs"), UnknownLength);
  EXPECT_EQ(RunLength().share_of("0.5"), 0.5);
}

}  // namespace
}  // namespace gallop::schedule
