#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/model/mlp.h"
#include "gallop/schedule/schedule.h"
#include "gallop/schedule/scheduled_value.h"
#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

void expect_equal_parameters(const Trained& found, const Trained& wanted) {
  for (size_t i = 0; i < wanted.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(found.parameters[i], wanted.parameters[i]));
  }
}

// Compares a run that is stopped after a step and resumed with an uninterrupted one: the final
// weights and the reports, except for the checkpoint at the stop. Returns these reports.
std::vector<std::string> expect_resumed_alike(
    const fs::path& folder, int64_t stop_at,
    const std::function<std::unique_ptr<Trained>(int64_t stop_at)>& run) {
  fs::remove_all(folder);
  const auto whole = run(-1);
  fs::remove_all(folder);
  auto lines = run(stop_at)->observer.lines;
  EXPECT_EQ(lines.back(), fmt::format("saved at {}", stop_at));
  lines.pop_back();
  const auto rest = run(-1);
  lines.insert(lines.end(), rest->observer.lines.begin(), rest->observer.lines.end());
  EXPECT_EQ(lines, whole->observer.lines);
  expect_equal_parameters(*rest, *whole);
  return lines;
}

// Includes optimizers that train with other weights than they evaluate and save.
// EveryOptimizer.ContinuesExactlyFromCopiedState covers every combination of optimizer and wrapper.
TEST_F(Trainers, ContinueEveryOptimizerBitForBit) {
  const TrainConfig config{
      .steps = 14, .evaluate_every = "7 steps", .checkpoint_every = "10 steps"};
  for (const std::string& name : every_optimizer()) {
    for (const auto& [wrapping, wrappers] : optim::every_wrapping()) {
      if (!optim::can_wrap(name, wrappers) || (wrappers != "[]" && name != "adamw")) continue;
      SCOPED_TRACE(name + wrapping);
      fs::remove_all(folder_);
      optimizer_ = name;
      wrappers_ = wrappers;
      resume_from_.reset();
      const auto undisturbed = run(false, config);
      for (const CheckpointInfo& saved : CheckpointStore(folder_ / "at-once").list()) {
        if (saved.step == 10) resume_from_ = saved;
      }
      ASSERT_TRUE(resume_from_);
      const auto resumed = run(true, config);
      expect_equal_parameters(*resumed, *undisturbed);
      EXPECT_EQ(resumed->observer.lines.back(), undisturbed->observer.lines.back());
    }
  }
}

TEST_F(Trainers, ContinueInFp8BitForBit) {
  const TrainConfig config{.steps = 14, .evaluate_every = "5 steps", .checkpoint_every = "never"};
  StepConfig fp8{.precision = precision::Precision::kFp8};
  fp8.compile = compile::CompileConfig();
  const auto whole = run(false, config, fp8);
  fs::remove_all(folder_);
  run_schedule("{name: cosine}", false, config, fp8, -1, 7);
  const auto rest = run(false, config, fp8);
  fs::remove_all(folder_);
  const auto bf16 = run(false, config, {.precision = precision::Precision::kBf16});
  expect_equal_parameters(*rest, *whole);
  EXPECT_FALSE(at::equal(bf16->parameters[0], whole->parameters[0]));
}

TEST_F(Trainers, GoOnWithTheirTeacherBitForBit) {
  const auto teacher =
      model::make_mlp({}, {.channels = 1, .height = 4, .width = 4, .classes = 3}, 7);
  for (const auto& parameter : teacher->parameters()) parameter.tensor.set_requires_grad(false);
  teacher->set_training(false);
  const StepConfig step{.distill = Distillation{.teacher = teacher.get()},
                        .compile = compile::CompileConfig()};
  const TrainConfig config{.steps = 20, .evaluate_every = "never", .checkpoint_every = "never"};
  teacher_ = "0123";
  const auto whole = run(false, config, step);
  EXPECT_EQ(CheckpointStore(folder_ / "at-once")
                .read_trainer(*CheckpointStore(folder_ / "at-once").newest())
                .at("distill.teacher"),
            "0123");
  fs::remove_all(folder_);
  run_schedule("{name: cosine}", false, config, step, -1, /*stop_at=*/9);
  teacher_ = "4567";
  try {
    run(false, config, step);
    ADD_FAILURE() << "another teacher";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("checksum 4567 in place of 0123"), std::string::npos)
        << error.what();
  }
  teacher_ = "0123";
  const auto resumed = run(false, config, step);
  fs::remove_all(folder_);
  teacher_.clear();
  const auto alone = run(false, config);
  bool is_alike = true;
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(whole->parameters[i], resumed->parameters[i]));
    is_alike = is_alike && at::equal(whole->parameters[i], alone->parameters[i]);
  }
  EXPECT_FALSE(is_alike);
}

TEST_F(Trainers, AValueThatVariesIsResumedToTheBit) {
  const std::string plateau =
      "{name: chained, to: 0.5, members: [linear, {reduce-on-plateau: {patience: 0, threshold: "
      "0.5}}]}";
  const TrainConfig config{.steps = 40,
                           .label_smoothing = 0.1,
                           .evaluate_every = "4 steps",
                           .checkpoint_every = "never"};
  const auto lines = expect_resumed_alike(folder_, 18, [&](int64_t stop_at) {
    return run_schedule("{name: cosine}", false, config, {}, -1, stop_at, plateau);
  });
  // It started at 0.1: evaluations have moved it to 0.5 faster than the linear schedule alone.
  EXPECT_NE(lines.front().find("varied 0.1"), std::string::npos) << lines.front();
  EXPECT_NE(lines[lines.size() - 3].find("varied 0.49"), std::string::npos) << lines.back();
}

// The effect of evaluations on the schedule is saved in the checkpoint.
TEST_F(Trainers, AScheduleThatFollowsEvaluationsIsResumedToTheBit) {
  const std::string plateau =
      "{name: reduce-on-plateau, patience: 0, cooldown: 1, threshold: 0.5, factor: 0.7}";
  const TrainConfig config{.steps = 40, .evaluate_every = "4 steps", .checkpoint_every = "never"};
  const auto lines = expect_resumed_alike(folder_, 18, [&](int64_t stop_at) {
    return run_schedule(plateau, false, config, {}, -1, stop_at);
  });
  // The learning rate has fallen before and after the stop.
  const auto has = [&](const char* lr) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(lr) != std::string::npos; });
  };
  EXPECT_TRUE(has("lr 0.069") && has("lr 0.034")) << lines.back();
}

// A sequence that has a momentum in its second half.
TEST_F(Trainers, TheMomentumOfAScheduleIsResumedToTheBit) {
  const std::string cycle =
      "{name: sequence, milestones: [0.5], members: [constant, {one-cycle: {base_momentum: 0.3, "
      "max_momentum: 0.9}}]}";
  const TrainConfig config{.steps = 24, .evaluate_every = "never", .checkpoint_every = "never"};
  for (const std::string name : {"sgd", "adam"}) {
    SCOPED_TRACE(name);
    optimizer_ = name;
    const auto lines = expect_resumed_alike(folder_, 15, [&](int64_t stop_at) {
      return run_schedule(cycle, false, config, {}, -1, stop_at);
    });
    EXPECT_NE(lines[2].find("varied 0.9 "), std::string::npos) << lines[2];
    EXPECT_NE(lines[15].find("varied 0.3"), std::string::npos) << lines[15];
  }
}

// Every schedule with its defaults, or around a member if it has no defaults.
TEST_F(Trainers, EveryScheduleIsResumedToTheBit) {
  const schedule::ScheduleRegistry schedules = schedule::built_in_schedules();
  const TrainConfig config{.steps = 12, .evaluate_every = "3 steps", .checkpoint_every = "never"};
  for (const std::string& name : schedules.names()) {
    SCOPED_TRACE(name);
    std::string yaml = fmt::format("{{name: {}}}", name);
    try {
      schedules.build(config::Component(schedules, name), {.samples = 1, .samples_per_epoch = 1});
    } catch (const UsageError&) {
      yaml = fmt::format("{{name: {}, members: [cosine]}}", name);
    }
    const auto run_it = [&](int64_t stop_at) {
      return run_schedule(yaml, false, config, {}, -1, stop_at);
    };
    fs::remove_all(folder_);
    const auto whole = run_it(-1);
    fs::remove_all(folder_);
    run_it(7);
    const auto rest = run_it(-1);
    EXPECT_EQ(rest->outcome.step, 12);
    expect_equal_parameters(*whole, *rest);
  }
}

}  // namespace
}  // namespace gallop::train
