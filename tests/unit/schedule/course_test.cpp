// The number of common steps of two runs, by hand for each kind of schedule.
#include "gallop/schedule/course.h"

#include <gtest/gtest.h>

#include "unit/schedule/build.h"

namespace gallop::schedule {
namespace {

constexpr const char* kConstant = "{name: constant}";

// Ten steps an epoch, the last of them ragged where `rest` is the samples that it has.
RunLength epochs(double count, double rest = 8) {
  const double samples = 72 + rest;
  return {.samples = count * samples,
          .samples_per_epoch = samples,
          .batch = 8,
          .batches_per_epoch = 10};
}

Course course(const std::string& yaml, const RunLength& length = epochs(16)) {
  std::shared_ptr<Schedule> schedule = build(yaml, length);
  return {
      .length = length,
      .values = {[schedule](double progress) { return schedule->factor(progress); },
                 [schedule](double progress) { return schedule->momentum(progress).value_or(0); }}};
}

int64_t common(const Course& one, const Course& other) {
  EXPECT_EQ(common_steps(one, other), common_steps(other, one));
  return common_steps(one, other);
}

TEST(CommonSteps, AreAllForTheSameSchedule) {
  for (const char* const yaml : {"{name: cosine, warmup: 1 epoch}", "{name: one-cycle}", kConstant,
                                 "{name: exponential, gamma: 0.9, step_size: 1 epoch}"}) {
    EXPECT_EQ(common(course(yaml), course(yaml)), 160) << yaml;
  }
}

TEST(CommonSteps, AreTheShorterRunForConstantRates) {
  EXPECT_EQ(common(course(kConstant), course(kConstant, epochs(5))), 50);
  EXPECT_EQ(common(course(kConstant), course(kConstant, epochs(2.5))), 25);
  // A ragged last batch.
  EXPECT_EQ(common(course(kConstant, epochs(16, 3)), course(kConstant, epochs(3, 3))), 30);
}

TEST(CommonSteps, AreTheWarmUpForCosinesOfDifferentLengths) {
  const char* const yaml = "{name: cosine, warmup: 2 epochs}";
  // Step 20 itself has the full rate in both.
  EXPECT_EQ(common(course(yaml), course(yaml, epochs(8))), 21);
  EXPECT_EQ(common(course("{name: cosine}"), course("{name: cosine}", epochs(8))), 1);
  EXPECT_EQ(common(course("{name: cosine, warmup: 2 epochs}"),
                   course("{name: cosine, warmup: 4 epochs}")),
            1);
}

TEST(CommonSteps, LastUntilTheEarlierDecayForWsd) {
  const Course late = course("{name: wsd, warmup: 1 epoch, decay: 4 epochs}");
  const Course early = course("{name: wsd, warmup: 1 epoch, decay: 8 epochs}");
  EXPECT_EQ(common(late, early), 81);
  // Also with another length: its decay begins at epoch 4.
  EXPECT_EQ(common(late, course("{name: wsd, warmup: 1 epoch, decay: 4 epochs}", epochs(8))), 41);
  EXPECT_EQ(common(late, course("{name: wsd, warmup: 1 epoch, decay: 4 epochs, final: 0.1}")), 121);
}

TEST(CommonSteps, LastUntilTheFirstDifferentMilestone) {
  const Course one = course("{name: multi-step, milestones: [5 epochs, 10 epochs], gamma: 0.5}");
  EXPECT_EQ(common(one, course("{name: multi-step, milestones: [5 epochs, 8 epochs], gamma: 0.5}")),
            80);
  EXPECT_EQ(
      common(one, course("{name: multi-step, milestones: [3 epochs, 10 epochs], gamma: 0.5}")), 30);
  EXPECT_EQ(
      common(one, course("{name: multi-step, milestones: [5 epochs, 10 epochs], gamma: 0.1}")), 50);
  EXPECT_EQ(common(one, course("{name: multi-step, milestones: [5 epochs], gamma: 0.5}")), 100);
  EXPECT_EQ(common(one, course("{name: multi-step, milestones: [5 epochs, 10 epochs], gamma: 0.5}",
                               epochs(8))),
            80);
}

TEST(CommonSteps, CompareAllScheduledValues) {
  const char* const yaml = "{name: one-cycle, base_momentum: 0.85, max_momentum: 0.95}";
  EXPECT_EQ(
      common(course(yaml), course("{name: one-cycle, base_momentum: 0.8, max_momentum: 0.95}")), 1);
  Course fewer = course(kConstant);
  fewer.values.pop_back();
  EXPECT_EQ(common(fewer, course(kConstant)), 0);
}

TEST(CommonSteps, AreNoneForDifferentBatchSizes) {
  RunLength other = epochs(16);
  other.batch = 16;
  other.batches_per_epoch = 5;
  EXPECT_EQ(common(course(kConstant), course(kConstant, other)), 0);
}

TEST(TurningPoints, AreWhereAPlateauEnds) {
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(turning_points(course("{name: wsd, warmup: 1 epoch, decay: 4 epochs}"), 10),
            Steps({121}));
  EXPECT_EQ(turning_points(course("{name: multi-step, milestones: [5 epochs, 10 epochs]}"), 10),
            Steps({50, 100}));
  EXPECT_EQ(turning_points(course("{name: multi-step, milestones: [5 epochs, 56 steps]}"), 10),
            Steps({50}));
  EXPECT_EQ(turning_points(course("{name: cosine, warmup: 1 epoch}"), 10), Steps());
  EXPECT_EQ(turning_points(course(kConstant), 10), Steps());
}

}  // namespace
}  // namespace gallop::schedule
