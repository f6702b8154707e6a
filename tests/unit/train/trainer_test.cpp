#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/model/mlp.h"
#include "gallop/model/model.h"
#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

// The averaged phase begins between two checkpoints, or has not begun yet.
TEST_F(Trainers, EvaluateAndSaveTheAverageBesideTheTraining) {
  const TrainConfig config{.steps = 20, .evaluate_every = "5 steps", .checkpoint_every = "5 steps"};
  const auto bare = run(false, config);
  fs::rename(folder_, folder_.string() + "-bare");
  wrappers_ = "[{swa: {start: 10 steps, every: 5 steps}}]";
  const auto averaged = run(false, config);
  for (size_t i = 0; i < bare->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(bare->parameters[i], averaged->parameters[i]));
  }
  const auto saved = [&](const fs::path& folder, int64_t step) {
    NamedTensors model;
    for (size_t i = 0; i < bare->parameters.size(); ++i) {
      model.push_back({model_names_.at(i), at::empty_like(bare->parameters[i])});
    }
    const CheckpointStore store(folder / "at-once");
    for (const CheckpointInfo& info : store.list()) {
      if (info.step == step) store.load_model(info, model);
    }
    return model.front().tensor;
  };
  const fs::path plain = folder_.string() + "-bare";
  EXPECT_TRUE(at::equal(saved(folder_, 5), saved(plain, 5)));
  EXPECT_TRUE(at::equal(saved(folder_, 10), saved(plain, 10)));
  const at::Tensor mean =
      (saved(plain, 10) + saved(plain, 15) + saved(plain, 20)).to(at::kDouble) / 3;
  EXPECT_TRUE(at::allclose(saved(folder_, 20).to(at::kDouble), mean, 1e-5, 1e-6));
  fs::remove_all(plain);
}

TEST_F(Trainers, SaveTheAveragedWeights) {
  optimizer_ = "schedule-free-adamw";
  const auto trained = run(false, {.steps = 12, .evaluate_every = "never"});
  const CheckpointStore store(folder_ / "at-once");
  const model::ModelRegistry models = model::built_in_models();
  const auto model =
      models.build(config::Component(models, "mlp"),
                   model::Task{.channels = 1, .height = 4, .width = 4, .classes = 3}, 2);
  store.load_model(*store.newest(), model->parameters());
  const at::Tensor x = model->parameters()[0].tensor.detach(), y = trained->parameters[0];
  EXPECT_FALSE(at::equal(x, y));
  // Close, as expected of an average.
  EXPECT_LT((x - y).abs().max().item<double>(), 0.1);
}

TEST_F(Trainers, LateNumbersTellTheSame) {
  const TrainConfig config{
      .steps = 45, .evaluate_every = "12 steps", .checkpoint_every = "20 steps"};
  for (const StepConfig& step : {StepConfig{}, StepConfig{.clip_grad_norm = 0.5}}) {
    fs::remove_all(folder_);
    const auto at_once = run(false, config, step), late = run(true, config, step);
    EXPECT_EQ(late->error, "");
    EXPECT_EQ(late->observer.lines, at_once->observer.lines);
    EXPECT_EQ(at_once->waits, 0);
    EXPECT_EQ(late->waits, 45);
    for (size_t i = 0; i < late->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(late->parameters[i], at_once->parameters[i]));
    }
  }
}

// Waits for the oldest result when ten steps ahead; for all before evaluations and checkpoints.
TEST_F(Trainers, NothingIsWaitedForUntilItIsDue) {
  const auto started_before = [&](const TrainConfig& config) {
    fs::remove_all(folder_);
    return run(true, config)->observer.started_before;
  };
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(started_before({.steps = 5, .evaluate_every = "never", .checkpoint_every = "never"}),
            Steps({5, 5, 5, 5, 5}));
  EXPECT_EQ(started_before({.steps = 12, .evaluate_every = "never", .checkpoint_every = "never"}),
            Steps({10, 11, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}));
  EXPECT_EQ(started_before({.steps = 6, .evaluate_every = "3 steps", .checkpoint_every = "never"}),
            Steps({3, 3, 3, 6, 6, 6}));
  EXPECT_EQ(started_before({.steps = 6, .evaluate_every = "never", .checkpoint_every = "4 steps"}),
            Steps({4, 4, 4, 4, 6, 6}));
}

TEST_F(Trainers, ReportsTheStepOfANonFiniteLoss) {
  const TrainConfig stops{.steps = 40, .checkpoint_every = "7 steps"};
  const auto at_once = run(false, stops, {}, 50), late = run(true, stops, {}, 50);
  EXPECT_NE(at_once->error, "");
  EXPECT_NE(at_once->error.find("the loss is not finite"), std::string::npos) << at_once->error;
  EXPECT_EQ(late->error.substr(0, late->error.find(" The last")),
            at_once->error.substr(0, at_once->error.find(" The last")));
  EXPECT_EQ(late->observer.lines, at_once->observer.lines);
}

TEST_F(Trainers, SkippedUpdatesAreCounted) {
  const TrainConfig skips{.steps = 40, .checkpoint_every = "7 steps", .on_nonfinite = "skip"};
  const auto run_it = [&](bool late) {
    return run_schedule("{name: constant}", late, skips, {}, /*bad=*/50);
  };
  const auto at_once = run_it(false), late = run_it(true);
  EXPECT_GT(at_once->outcome.skipped_updates, 0);
  EXPECT_EQ(late->outcome.skipped_updates, at_once->outcome.skipped_updates);
  EXPECT_EQ(late->observer.lines, at_once->observer.lines);
  for (size_t i = 0; i < late->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(late->parameters[i], at_once->parameters[i]));
  }
}

TEST_F(Trainers, EndsEarlyWithoutABetterMetric) {
  TrainConfig config{.epochs = 10, .early_stopping = {.patience = 2, .min_change = 10}};
  const auto accuracy = run(false, config);
  EXPECT_TRUE(accuracy->outcome.finished);
  EXPECT_EQ(accuracy->outcome.step, 48);
  EXPECT_EQ(accuracy->outcome.steps, 160);
  EXPECT_EQ(accuracy->outcome.ended_early, "no better accuracy in 2 evaluations");
  fs::remove_all(folder_);
  metrics_ = metrics_of("loss");
  EXPECT_EQ(run(false, config)->outcome.ended_early, "no better loss in 2 evaluations");
  fs::remove_all(folder_);
  metrics_ = metrics_of("f1 average=weighted");
  EXPECT_EQ(run(false, config)->outcome.ended_early, "no better f1-weighted in 2 evaluations");
  fs::remove_all(folder_);
  config.early_stopping.min_change = 0;
  config.epochs = 2;
  const auto whole = run(false, config);
  EXPECT_EQ(whole->outcome.step, 32);
  EXPECT_EQ(whole->outcome.ended_early, "");
}

TEST_F(Trainers, EndsWithTheBestWeightsWhereThatIsWanted) {
  // With few predictions, accuracy does not increase at every evaluation.
  TrainConfig config{.epochs = 4, .evaluate_every = "3 steps"};
  const auto plain = run(false, config);
  EXPECT_EQ(plain->outcome.restored_step, -1);
  ASSERT_LT(plain->outcome.best->step, plain->outcome.step);
  const CheckpointStore store(folder_ / "at-once");
  NamedTensors best;
  for (size_t i = 0; i < plain->parameters.size(); ++i) {
    best.push_back({model_names_.at(i), at::empty_like(plain->parameters[i])});
  }
  store.load_model(*store.best(), best);
  fs::remove_all(folder_);
  config.early_stopping.restore_best = true;
  const auto restored = run(false, config);
  EXPECT_EQ(restored->outcome.restored_step, plain->outcome.best->step);
  NamedTensors latest;
  for (const auto& [name, tensor] : best) latest.push_back({name, at::empty_like(tensor)});
  store.load_model(*store.newest(), latest);
  EXPECT_EQ(store.newest()->step, restored->outcome.step);
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_TRUE(at::equal(restored->parameters[i], best[i].tensor));
    EXPECT_TRUE(at::equal(latest[i].tensor, best[i].tensor));
  }
}

TEST_F(Trainers, KeepsTheEndOfEachCycle) {
  TrainConfig config{.steps = 24, .evaluate_every = "never", .checkpoint_every = "never"};
  config.snapshots = true;
  const auto steps_of = [&](const char* schedule, int64_t stop_at) {
    fs::remove_all(folder_);
    auto trained = run_schedule(schedule, false, config, {}, -1, stop_at);
    if (stop_at > 0) trained = run_schedule(schedule, false, config);
    EXPECT_EQ(trained->outcome.step, 24);
    std::vector<int64_t> steps;
    for (const auto& one : CheckpointStore(folder_ / "at-once").snapshots()) {
      steps.push_back(one.step);
    }
    return steps;
  };
  using Steps = std::vector<int64_t>;
  for (const int64_t stop_at : {-1, 11, 12, 13}) {
    EXPECT_EQ(steps_of("{name: cosine-restarts, period: 0.25}", stop_at), Steps({6, 12, 18, 24}));
    EXPECT_EQ(steps_of("{name: cyclic, period: 12 steps}", stop_at), Steps({12, 24}));
    EXPECT_EQ(steps_of("{name: cosine-restarts, period: 4 steps, multiplier: 2}", stop_at),
              Steps({4, 12, 24}));
  }
  // The last checkpoint has the final weights of the run.
  const auto trained = run_schedule("{name: cosine-restarts, period: 0.25}", false, config);
  const CheckpointStore store(folder_ / "at-once");
  EXPECT_EQ(store.snapshots().back().folder, store.newest()->folder);
}

TEST_F(Trainers, SnapshotsNeedCycles) {
  TrainConfig config{.steps = 4};
  config.snapshots = true;
  EXPECT_THROW(run_schedule("{name: cosine}", false, config), UsageError);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Trainers, PatienceNeedsEvaluations) {
  const TrainConfig config{.early_stopping = {.patience = 1}};
  EXPECT_THROW(run(false, config, {}, /*bad=*/50), UsageError);
}

TEST_F(Trainers, AScheduleThatFollowsEvaluationsNeedsThem) {
  const TrainConfig never{.steps = 4, .evaluate_every = "never"};
  const auto error_of = [&](const TrainConfig& config, int64_t bad) -> std::string {
    try {
      run_schedule("{name: reduce-on-plateau}", false, config, {}, bad);
      return {};
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(
      error_of(never, -1),
      "the schedule follows evaluations, but there are none: train.evaluate_every is never; set "
      "it, for example to '1 epoch', or use another schedule.name");
  EXPECT_EQ(
      error_of({.steps = 4}, 60),
      "the schedule follows evaluations, but there are none: the data have no split to evaluate "
      "on; set data.validation, or use another schedule.name");
}

TEST_F(Trainers, EpochsAndStepsOfAScheduleAreThoseOfTheRun) {
  // 16 steps per epoch.
  const auto lines = run_schedule("{name: multi-step, milestones: [5 steps, 1 epoch]}", false,
                                  {.steps = 20, .evaluate_every = "never"})
                         ->observer.lines;
  for (const auto& [step, lr] : std::vector<std::pair<int, const char*>>{
           {4, "lr 0.1 "}, {5, "lr 0.010"}, {15, "lr 0.010"}, {16, "lr 0.0010"}}) {
    EXPECT_NE(lines[static_cast<size_t>(step)].find(lr), std::string::npos)
        << lines[static_cast<size_t>(step)];
  }
}

}  // namespace
}  // namespace gallop::train
