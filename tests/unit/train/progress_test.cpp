#include "gallop/train/progress.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/trainer.h"

namespace gallop::train {
namespace {

TEST(Progress, SurvivesACheckpointExactly) {
  Progress progress;
  progress.step = 123;
  progress.samples = 45678;
  progress.best_score = 0.1 + 0.2;
  progress.best_step = 100;
  progress.training_seconds = 1e-9;
  progress.splits = 4;
  const data::LoaderState loader{.seed = 3, .epoch = 2, .position = 256, .skipped = 1};
  data::LoaderState loaded;
  const Progress again = Progress::from_map(progress.to_map(loader), loaded);
  EXPECT_EQ(again.to_map(loaded), progress.to_map(loader));
  EXPECT_EQ(again.best_score, progress.best_score);
  EXPECT_EQ(again.splits, 4);
  EXPECT_EQ(loaded.position, 256);
  // Checkpoints of earlier versions have no such entry.
  auto map = progress.to_map(loader);
  map.erase("splits");
  EXPECT_EQ(Progress::from_map(map, loaded).splits, 1);
}

// A schedule that returns its last input.
class LastLoss final : public schedule::Schedule {
 public:
  double factor(double) const override { return 1; }
  std::vector<double> state() const override { return {loss_, 1 / loss_}; }
  void restore(const std::vector<double>& state) override { loss_ = state[0]; }
  double loss_ = 0;
};

TEST(Progress, TheSchedulesStateSurvivesExactly) {
  LastLoss schedule, again;
  schedule.loss_ = 0.1 + 0.2;
  std::map<std::string, std::string> map;
  write_schedule(schedule, "schedule", map);
  read_schedule(map, "schedule", again);
  EXPECT_EQ(again.state(), schedule.state());
  schedule.loss_ = 0;  // The second number is infinite.
  write_schedule(schedule, "schedule", map);
  read_schedule(map, "schedule", again);
  EXPECT_EQ(again.state(), schedule.state());
  map.erase("schedule.1");
  EXPECT_THROW(read_schedule(map, "schedule", again), DataError);
}

TEST(Progress, NamesWhatACheckpointLacks) {
  data::LoaderState loader;
  auto map = Progress().to_map(loader);
  map.erase("samples");
  EXPECT_THROW(Progress::from_map(map, loader), DataError);
  map = Progress().to_map(loader);
  map["step"] = "12x";
  EXPECT_THROW(Progress::from_map(map, loader), DataError);
}

TEST(Progress, FirstEvaluationIsBestThenOnlyHigherOnes) {
  Progress progress;
  EXPECT_TRUE(progress.note_evaluation(-3, 0));
  EXPECT_FALSE(progress.note_evaluation(-3, 0));
  progress.step = 5;
  EXPECT_TRUE(progress.note_evaluation(-2, 0));
  EXPECT_EQ(progress.best_step, 5);
  EXPECT_FALSE(progress.note_evaluation(std::nan(""), 0));
}

TEST(Progress, NaNIsNeverTheBest) {
  Progress progress;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double score : {std::nan(""), -infinity, infinity}) {
    EXPECT_FALSE(progress.note_evaluation(score, 0)) << score;
    EXPECT_EQ(progress.best_step, -1);
  }
  EXPECT_EQ(progress.evaluations_without_gain, 3);
  progress.step = 5;
  EXPECT_TRUE(progress.note_evaluation(-1e30, 0));
  EXPECT_EQ(progress.best_step, 5);
  EXPECT_EQ(progress.evaluations_without_gain, 0);
  for (const double score : {std::nan(""), infinity}) {
    EXPECT_FALSE(progress.note_evaluation(score, 0)) << score;
  }
  EXPECT_EQ(progress.evaluations_without_gain, 2);
  EXPECT_TRUE(progress.note_evaluation(-1, 0));
}

// As earlier versions saved it after a first evaluation of NaN.
TEST(Progress, LeavesABestThatIsNaN) {
  Progress progress;
  progress.best_step = 10;
  progress.best_score = progress.score_to_beat = std::nan("");
  EXPECT_TRUE(progress.note_evaluation(-3, 0));
  EXPECT_EQ(progress.best_score, -3);
  EXPECT_EQ(progress.evaluations_without_gain, 0);
}

TEST(Progress, CountsEvaluationsWithoutAGain) {
  Progress progress;
  // 0.5, 0.55 and 0.59 are each the best so far, but not 0.1 above the last gain.
  const std::pair<double, int64_t> expected[] = {{0.5, 0}, {0.55, 1}, {0.59, 2}, {0.61, 0},
                                                 {0.6, 1}, {0.9, 0},  {0.2, 1}};
  for (const auto& [score, without] : expected) {
    progress.note_evaluation(score, 0.1);
    EXPECT_EQ(progress.evaluations_without_gain, without) << score;
  }
  EXPECT_EQ(progress.best_score, 0.9);
}

TEST(Length, RoundsTheLastEpochUpToABatchAndCountsTheRaggedOnes) {
  TrainConfig config;
  config.epochs = 2;
  Length length = Length::of(config, 32, 100);
  EXPECT_EQ(length.steps, 8);
  EXPECT_EQ(length.samples, 200);
  config.epochs = 1.5;
  length = Length::of(config, 32, 100);
  EXPECT_EQ(length.steps, 6);
  EXPECT_EQ(length.samples, 164);
  EXPECT_EQ(length.for_schedules().share_of("1 epoch"), 100. / 164);
  EXPECT_EQ(length.for_schedules().share_of("5 steps"), 132. / 164);
  config.steps = 3;
  EXPECT_EQ(Length::of(config, 32, 100).samples, 96);
}

}  // namespace
}  // namespace gallop::train
