#include "gallop/train/batch_history.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/length.h"
#include "gallop/train/progress.h"
#include "gallop/train/trigger.h"
#include "unit/base/error_of.h"

namespace gallop::train {
namespace {

using Map = std::map<std::string, std::string>;

// The checkpoint fields at this position.
Map saved(int64_t step, int64_t samples, int64_t epoch, int64_t position) {
  Progress progress;
  progress.step = step;
  progress.samples = samples;
  return progress.to_map({.seed = 1, .epoch = epoch, .position = position});
}

Map saved(const BatchHistory& history, int64_t step, int64_t samples, int64_t epoch,
          int64_t position) {
  Map map = saved(step, samples, epoch, position);
  history.write(map);
  return map;
}

TEST(BatchHistory, StaysUniformWhereNothingChanges) {
  const BatchHistory history(16, 100);
  const auto again = BatchHistory::resumed(saved(history, 10, 148, 1, 48), BatchHistory(16, 100));
  EXPECT_TRUE(again.is_uniform());
  EXPECT_EQ(again.last().batch, 16);
  EXPECT_EQ(again.last().samples_after(10), 148);
}

TEST(BatchHistory, AddsASegmentForEachBatchSizeAndKeepsIt) {
  auto history =
      BatchHistory::resumed(saved(BatchHistory(16, 100), 10, 148, 1, 48), BatchHistory(10, 100));
  ASSERT_EQ(history.segments().size(), 2U);
  EXPECT_EQ(history.last().step, 10);
  EXPECT_EQ(history.last().samples_after(11), 158);
  EXPECT_EQ(history.last().samples_after(16), 200);  // 48 + 5 * 10 + 2.
  EXPECT_EQ(history.last().samples_after(17), 210);
  EXPECT_EQ(history.last().epochs_after(16), 2);
  history = BatchHistory::resumed(saved(history, 16, 200, 2, 0), BatchHistory(16, 100));
  ASSERT_EQ(history.segments().size(), 3U);
  EXPECT_EQ(history.at(9).batch, 16);
  EXPECT_EQ(history.at(10).batch, 10);
  EXPECT_EQ(history.at(16).batch, 16);
}

TEST(BatchHistory, RampsUp) {
  const TrainConfig config{.epochs = 3, .rampup_batch_size = {.start = 8}};
  const BatchHistory history = new_history(config, 32, 100);
  ASSERT_EQ(history.segments().size(), 3U);
  // 75 samples are done after 10 steps, and 150 after six more, of which the second completes the
  // first epoch.
  EXPECT_EQ(history.segments()[1].step, 10);
  EXPECT_EQ(history.segments()[1].samples, 80);
  EXPECT_EQ(history.segments()[2].step, 16);
  EXPECT_EQ(history.segments()[2].samples, 164);
  EXPECT_EQ(history.segments()[2].epoch, 1);
  EXPECT_EQ(history.segments()[2].position, 64);
  const Length length = Length::of(config, history);
  EXPECT_EQ(length.steps, 22);
  EXPECT_EQ(length.samples, 300);
  EXPECT_EQ(length.step_of({.unit = Interval::Unit::kEpochs, .count = 1}), 12);
  EXPECT_EQ(length.epochs_after(18), 2);
  const auto changes = history.changes();
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[2].batch, 32);
  EXPECT_EQ(changes[2].position, 64);
  EXPECT_TRUE(BatchHistory(32, 100).changes().empty());
}

TEST(BatchHistory, RampsUpByStepsAndIncrements) {
  const TrainConfig config{.steps = 20,
                           .rampup_batch_size = {.start = 10, .increment = 20, .duration = 0.4}};
  const BatchHistory history = new_history(config, 40, 1000);
  ASSERT_EQ(history.segments().size(), 3U);
  EXPECT_EQ(history.at(3).batch, 10);
  EXPECT_EQ(history.at(4).batch, 30);
  EXPECT_EQ(history.at(8).batch, 40);
  EXPECT_EQ(Length::of(config, history).samples, 4 * 10 + 4 * 30 + 12 * 40);
}

TEST(BatchHistory, ContinuesARampUpUnlessTheSizeChanges) {
  const TrainConfig config{.epochs = 3, .rampup_batch_size = {.start = 8}};
  const BatchHistory planned = new_history(config, 32, 100);
  const auto again = BatchHistory::resumed(saved(planned, 12, 100, 1, 0), planned);
  EXPECT_EQ(again.segments().size(), 3U);
  EXPECT_EQ(again.at(15).batch, 16);
  const auto other = BatchHistory::resumed(saved(planned, 12, 100, 1, 0), BatchHistory(50, 100));
  ASSERT_EQ(other.segments().size(), 3U);
  EXPECT_EQ(other.at(11).batch, 16);
  EXPECT_EQ(other.last().step, 12);
  EXPECT_EQ(other.last().batch, 50);
}

// 120 samples an epoch instead of 100.
TEST(BatchHistory, ContinuesARampUpWithMoreData) {
  const TrainConfig config{.epochs = 3, .rampup_batch_size = {.start = 8}};
  const BatchHistory planned = new_history(config, 32, 100);
  const auto more =
      BatchHistory::resumed(saved(planned, 5, 40, 0, 40), new_history(config, 32, 120));
  ASSERT_EQ(more.segments().size(), 4U);
  EXPECT_EQ(more.at(5).batch, 8);
  EXPECT_EQ(more.at(5).samples_per_epoch, 120);
  EXPECT_EQ(more.at(10).batch, 16);
  EXPECT_EQ(more.at(10).samples, 80);
  EXPECT_EQ(more.at(16).batch, 32);
  EXPECT_EQ(more.last().samples_per_epoch, 120);
}

TEST(BatchHistory, CountsNoStepsInARampUpOfEpochs) {
  TrainConfig config{.epochs = 3, .rampup_batch_size = {.start = 8}};
  const auto length_of = [&] {
    return Length::of(config, new_history(config, 32, 100)).for_schedules();
  };
  EXPECT_EQ(length_of().share_of("1.5 epochs"), 0.5);
  EXPECT_EQ(error_of([&] { length_of().share_of("5 steps"); }),
            "train.rampup_batch_size: batches become larger, so the schedule cannot be given in "
            "steps; give it in epochs, or as a fraction of the run");
  config.steps = 20;
  EXPECT_EQ(length_of().share_of("5 steps"), 0.25);
  EXPECT_NE(error_of([&] { length_of().share_of("1 epoch"); }), "");
}

TEST(RampupSizes, DoubleOrGrowByAnIncrement) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(rampup_sizes({}, 32), (Sizes{32}));
  EXPECT_EQ(rampup_sizes({.start = 8}, 32), (Sizes{8, 16, 32}));
  EXPECT_EQ(rampup_sizes({.start = 12}, 32), (Sizes{12, 24, 32}));
  EXPECT_EQ(rampup_sizes({.start = 8, .increment = 8}, 30), (Sizes{8, 16, 24, 30}));
  EXPECT_EQ(rampup_sizes({.start = 32}, 32), (Sizes{32}));
}

TEST(BatchHistory, ASegmentWithoutStepsLeavesNoTrace) {
  auto history =
      BatchHistory::resumed(saved(BatchHistory(16, 100), 10, 148, 1, 48), BatchHistory(10, 100));
  history = BatchHistory::resumed(saved(history, 10, 148, 1, 48), BatchHistory(16, 100));
  EXPECT_TRUE(history.is_uniform());
  history = BatchHistory::resumed(saved(BatchHistory(16, 100), 0, 0, 0, 0), BatchHistory(10, 100));
  EXPECT_TRUE(history.is_uniform());
  EXPECT_EQ(history.last().batch, 10);
}

TEST(BatchHistory, ReadsCheckpointsThatHaveNone) {
  EXPECT_TRUE(BatchHistory::resumed(saved(10, 148, 1, 48), BatchHistory(16, 100)).is_uniform());
  const auto changed = BatchHistory::resumed(saved(10, 148, 1, 48), BatchHistory(10, 100));
  ASSERT_EQ(changed.segments().size(), 2U);
  EXPECT_EQ(changed.last().step, 10);
  EXPECT_EQ(changed.last().samples, 148);
  EXPECT_EQ(changed.first().batch, 15);
}

// Epochs of 7 batches of different sizes, 14.3 on average.
TEST(BatchHistory, CountsBatchesOfDifferentSizes) {
  const BatchHistory history(14, 100, 7);
  EXPECT_EQ(history.first().batches_per_epoch(), 7);
  EXPECT_EQ(history.first().samples_after(7), 100);
  EXPECT_EQ(history.first().samples_after(21), 300);
  EXPECT_EQ(history.first().samples_after(3), 42);
  // After the second batch of the second epoch, which had 40 samples together.
  const auto same = BatchHistory::resumed(saved(history, 9, 140, 1, 40), BatchHistory(14, 100, 7));
  EXPECT_TRUE(same.is_uniform());
  EXPECT_EQ(same.first().batches, 7);
  // From there with batches of 15, and back.
  const auto other = BatchHistory::resumed(saved(history, 9, 140, 1, 40), BatchHistory(15, 100));
  ASSERT_EQ(other.segments().size(), 2U);
  EXPECT_EQ(other.last().samples_after(13), 200);
  const auto again = BatchHistory::resumed(saved(other, 13, 200, 2, 0), BatchHistory(14, 100, 7));
  ASSERT_EQ(again.segments().size(), 3U);
  EXPECT_EQ(again.last().samples_after(20), 300);
  // Checkpoints of older versions do not have the number.
  Map map = saved(BatchHistory(14, 100), 9, 140, 1, 40);
  map.erase("batches.0.batches_per_epoch");
  EXPECT_EQ(BatchHistory::resumed(map, BatchHistory(14, 100)).first().batches_per_epoch(), 8);
}

TEST(BatchHistory, RefusesDamage) {
  Map map = saved(BatchHistory(16, 100), 10, 148, 1, 48);
  map["batches.0.batch"] = "0";
  EXPECT_THROW(BatchHistory::resumed(map, BatchHistory(16, 100)), DataError);
  map["batches.0.batch"] = "x";
  EXPECT_THROW(BatchHistory::resumed(map, BatchHistory(16, 100)), DataError);
  map["batches"] = "3";
  EXPECT_THROW(BatchHistory::resumed(map, BatchHistory(16, 100)), DataError);
}

// 64 samples: two epochs of 4 steps, then others.
Length two_epochs_then(int64_t batch, const TrainConfig& config) {
  return Length::of(config, BatchHistory::resumed(saved(BatchHistory(16, 64), 8, 128, 2, 0),
                                                  BatchHistory(batch, 64)));
}

TEST(Length, EndsAtTheSameSampleWithAnotherBatchSize) {
  TrainConfig config;
  config.epochs = 4;
  EXPECT_EQ(two_epochs_then(32, config).steps, 12);
  EXPECT_EQ(two_epochs_then(8, config).steps, 24);
  EXPECT_EQ(two_epochs_then(10, config).steps, 22);  // 7 per epoch.
  for (const int64_t batch : {8, 10, 32, 64, 100}) {
    const Length length = two_epochs_then(batch, config);
    EXPECT_EQ(length.samples, 256) << batch;
    EXPECT_EQ(length.progress(128), 0.5) << batch;
    EXPECT_EQ(length.epochs_after(length.steps), 4) << batch;
    EXPECT_EQ(length.epochs_after(4), 1) << batch;
    EXPECT_EQ(length.for_schedules().share_of("4 steps"), 0.25) << batch;
    EXPECT_EQ(length.for_updates().steps_of("1"), length.steps) << batch;
    EXPECT_EQ(length.for_updates().steps_of("0.25"), 4) << batch;
    EXPECT_EQ(length.for_updates().steps_of("3 epochs"),
              length.step_of(Interval::parse("3 epochs")))
        << batch;
    EXPECT_EQ(length.for_updates().steps_between("1 epoch"), (64 + batch - 1) / batch) << batch;
  }
}

TEST(Length, OfARunInStepsCountsThem) {
  TrainConfig config;
  config.steps = 16;
  const Length length = two_epochs_then(32, config);
  EXPECT_EQ(length.steps, 16);
  EXPECT_EQ(length.samples, 128 + 8 * 32);
  EXPECT_EQ(length.progress(64), 0.25);
  EXPECT_EQ(length.progress(128), 0.5);
  EXPECT_EQ(length.progress(128 + 4 * 32), 0.75);
  EXPECT_EQ(length.progress(length.samples), 1);
  EXPECT_EQ(length.for_schedules().share_of("4 steps"), 0.25);
  EXPECT_EQ(length.for_updates().steps_of("0.75"), 12);
}

TEST(Length, FindsEpochsFromTheMiddleOfOne) {
  TrainConfig config;
  config.epochs = 3;
  const auto history =
      BatchHistory::resumed(saved(BatchHistory(16, 100), 10, 148, 1, 48), BatchHistory(10, 100));
  const Length length = Length::of(config, history);
  EXPECT_EQ(length.step_of(Interval::parse("1 epoch")), 7);
  EXPECT_EQ(length.step_of(Interval::parse("2 epochs")), 16);
  EXPECT_EQ(length.steps, 26);
  EXPECT_EQ(length.samples, 300);
}

TEST(Trigger, CountsEpochsAcrossBatchSizes) {
  TrainConfig config;
  config.epochs = 4;
  const Length length = two_epochs_then(32, config);
  Trigger trigger(Interval::parse("1 epoch"), length);
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= length.steps; ++step) {
    if (!trigger.at(step)) continue;
    steps.push_back(step);
    trigger.done(step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 10, 12}));
}

}  // namespace
}  // namespace gallop::train
