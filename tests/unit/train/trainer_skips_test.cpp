#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/schedule/scheduled_value.h"
#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

// The learning rates reported by the steps of a run.
std::vector<std::string> rates_of(const Trained& trained) {
  std::vector<std::string> rates;
  for (const std::string& line : trained.observer.lines) {
    const size_t begin = line.find("lr "), end = line.find(" varied");
    if (begin != std::string::npos) rates.push_back(line.substr(begin, end - begin));
  }
  return rates;
}

// Sample 50 is not finite: one update in each epoch of 16 is skipped.
TEST_F(Trainers, TheScheduleWaitsWhereAnUpdateIsSkipped) {
  const TrainConfig skips{.steps = 40, .checkpoint_every = "never", .on_nonfinite = "skip"};
  const auto trained = run(false, skips, {}, 50);
  const auto held = rates_of(*trained), free = [&] {
    fs::remove_all(folder_);
    return rates_of(*run(false, {.steps = 40, .evaluate_every = "never"}));
  }();
  ASSERT_EQ(held.size(), 40u);
  size_t behind = 0;
  for (size_t step = 0; step < held.size(); ++step) {
    EXPECT_EQ(held[step], free[step - behind]) << step;
    const bool was_skipped = trained->observer.lines[step].find(
                                 fmt::format("skipped {}", behind + 1)) != std::string::npos;
    behind += was_skipped ? 1 : 0;
  }
  EXPECT_EQ(behind, static_cast<size_t>(trained->outcome.skipped_updates));
  EXPECT_GE(behind, 2u);
  // The run itself does not become longer.
  EXPECT_EQ(trained->outcome.step, 40);
}

// A skipped update takes effect nine steps later if ten results may be in flight, even if none is:
// a run that is stopped, and so has waited for them, continues with the same learning rates.
TEST_F(Trainers, WhatIsHeldDoesNotDependOnWhenResultsCame) {
  const TrainConfig skips{.steps = 40, .checkpoint_every = "never", .on_nonfinite = "skip"};
  const auto whole = run(true, skips, {}, 50);
  const auto late = rates_of(*whole);
  fs::remove_all(folder_);
  const auto free = rates_of(*run(false, {.steps = 40, .evaluate_every = "never"}));
  std::vector<size_t> skipped;
  for (size_t step = 0; step < late.size(); ++step) {
    if (whole->observer.lines[step].find(fmt::format("skipped {}", skipped.size() + 1)) !=
        std::string::npos) {
      skipped.push_back(step);
    }
  }
  ASSERT_GE(skipped.size(), 2u);
  for (size_t step = 0; step < late.size(); ++step) {
    const auto counts = [&](size_t one) { return one + 9 < step; };
    const auto behind = std::count_if(skipped.begin(), skipped.end(), counts);
    EXPECT_EQ(late[step], free[step - static_cast<size_t>(behind)]) << step;
  }
  for (const int64_t stop_at : {3, 9, 14, 17, 25}) {
    fs::remove_all(folder_);
    auto first = run_schedule("{name: cosine}", true, skips, {}, 50, stop_at);
    auto rates = rates_of(*first);
    const auto rest = run(true, skips, {}, 50);
    const auto more = rates_of(*rest);
    rates.insert(rates.end(), more.begin(), more.end());
    EXPECT_EQ(rates, late) << stop_at;
    for (size_t i = 0; i < whole->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(rest->parameters[i], whole->parameters[i]));
    }
  }
}

TEST_F(Trainers, Fp16HoldsTheScheduleWhileItFindsItsScale) {
  // fp16 gradients overflow until the scale is found: 65536 is too large for the first steps.
  const TrainConfig config{.steps = 30, .evaluate_every = "never", .checkpoint_every = "never"};
  const StepConfig fp16{.precision = precision::Precision::kFp16};
  optimizer_ = "sgd";
  const auto whole = run(false, config, fp16);
  const auto rates = rates_of(*whole);
  const int64_t skipped = whole->outcome.skipped_updates;
  std::vector<std::string> distinct = rates;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_EQ(static_cast<int64_t>(distinct.size()), 30 - skipped);
  fs::remove_all(folder_);
  run_schedule("{name: cosine}", false, config, fp16, -1, 7);
  const auto rest = run(false, config, fp16);
  EXPECT_EQ(rest->outcome.skipped_updates, skipped);
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(rest->parameters[i], whole->parameters[i]));
  }
}

}  // namespace
}  // namespace gallop::train
