#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

TrainConfig spikes(const std::string& action, int64_t steps, int64_t limit = 10) {
  TrainConfig config{.steps = steps, .evaluate_every = "never", .checkpoint_every = "5 steps"};
  config.spikes = {.action = action, .threshold = 8, .window = 6, .limit = limit};
  return config;
}

StepConfig compiled_spikes(const TrainConfig& config) {
  return {.spikes = config.spikes, .compile = compile::CompileConfig()};
}

// Runs in which one sample of 64 makes the loss spike, once per epoch of 16 steps.
class SpikyTrainers : public Trainers {
 protected:
  SpikyTrainers() { loud_ = 11; }

  std::unique_ptr<Trained> train(const TrainConfig& config, int64_t stop_at = -1,
                                 bool late = false) {
    return run_schedule("{name: constant}", late, config, compiled_spikes(config), -1, stop_at);
  }
};

TEST_F(SpikyTrainers, SkipWhatMakesTheLossJump) {
  const TrainConfig config = spikes("skip", 64);
  const auto whole = train(config);
  EXPECT_EQ(whole->error, "");
  EXPECT_GE(whole->outcome.skipped_updates, 2);
  EXPECT_EQ(whole->outcome.rewinds, 0);
  const auto late = train(config, -1, /*late=*/true);
  EXPECT_EQ(late->outcome.skipped_updates, whole->outcome.skipped_updates);
  EXPECT_EQ(late->observer.lines, whole->observer.lines);
  fs::remove_all(folder_);
  train(config, 29);
  const auto resumed = train(config);
  EXPECT_EQ(resumed->outcome.skipped_updates, whole->outcome.skipped_updates);
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(resumed->parameters[i], whole->parameters[i]));
    EXPECT_TRUE(at::equal(late->parameters[i], whole->parameters[i]));
  }
}

TEST_F(SpikyTrainers, GoBackToTheLastCheckpointAndPastTheData) {
  // The step of the first spike after a checkpoint.
  const TrainConfig long_run = spikes("skip", 64);
  const auto skipped = train(long_run);
  int64_t spike = 0;
  for (const std::string& line : skipped->observer.lines) {
    if (line.ends_with("skipped 1")) {
      spike = std::stoll(line.substr(5));
      break;
    }
  }
  ASSERT_GT(spike, 6);
  ASSERT_NE(spike % 5, 0);
  fs::remove_all(folder_);
  const auto back = train(spikes("rewind", spike));
  EXPECT_EQ(back->outcome.rewinds, 1);
  EXPECT_EQ(back->outcome.step, spike) << "the run is as long as before";
  const CheckpointStore store(folder_ / "at-once");
  NamedTensors old;
  for (size_t i = 0; i < back->parameters.size(); ++i) {
    old.push_back({model_names_.at(i), at::empty_like(back->parameters[i])});
  }
  store.load_model(*store.of_step(spike / 5 * 5), old);
  for (size_t i = 0; i < old.size(); ++i) {
    EXPECT_TRUE(at::equal(back->parameters[i], old[i].tensor));
  }
  fs::remove_all(folder_);
  // The same samples at the same steps as in a run that only skips.
  const auto whole = train(spikes("rewind", 64));
  EXPECT_GE(whole->outcome.rewinds, 2);
  EXPECT_EQ(whole->outcome.samples, skipped->outcome.samples);
}

// Also with checkpoints saved at stops in between, which are no rewind targets.
TEST_F(SpikyTrainers, GoBackAlikeAfterAResume) {
  keep_last_ = 1;
  const TrainConfig config = spikes("rewind", 64);
  const auto whole = train(config);
  ASSERT_GE(whole->outcome.rewinds, 2);
  for (const int64_t stop_at : {18, 24, 26, 31, 37, 43, 48}) {
    fs::remove_all(folder_);
    train(config, stop_at);
    train(config, stop_at + 1);
    train(config, stop_at + 2);
    const auto resumed = train(config);
    EXPECT_EQ(resumed->outcome.rewinds, whole->outcome.rewinds);
    for (size_t i = 0; i < whole->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(resumed->parameters[i], whole->parameters[i])) << stop_at;
    }
  }
  fs::remove_all(folder_);
  const auto late = train(config, -1, /*late=*/true);
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(late->parameters[i], whole->parameters[i]));
  }
}

TEST_F(SpikyTrainers, EndWhereTheLimitIsReached) {
  const auto back = train(spikes("rewind", 64, /*limit=*/1));
  EXPECT_NE(back->error.find("requires rewind number 2, and train.spikes.limit is 1"),
            std::string::npos)
      << back->error;
  fs::remove_all(folder_);
  // All losses above the mean count as spikes: soon there are two in a row.
  TrainConfig config = spikes("skip", 200, /*limit=*/1);
  config.spikes.threshold = 1e-3;
  config.spikes.window = 2;
  const auto skipping = train(config);
  EXPECT_NE(skipping->error.find("is spike number 2 in a row, and train.spikes.limit is 1"),
            std::string::npos)
      << skipping->error;
}

}  // namespace
}  // namespace gallop::train
