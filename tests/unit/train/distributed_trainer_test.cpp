// Data-parallel trainers: a bit flip in one of the processes.
#include <chrono>
#include <mutex>
#include <thread>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/parallel/ddp.h"
#include "unit/base/error_of.h"
#include "unit/parallel/ranks.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

/// Flips a bit of an element after a step, the first `times` times.
struct Flip : Observer {
  Flip(at::Tensor tensor_, int64_t step_, int64_t times_)
      : tensor(std::move(tensor_)), step(step_), times(times_) {}
  void stepped(const StepEvent& e) override {
    if (e.step != step || times-- <= 0) return;
    auto* const bytes = static_cast<uint8_t*>(tensor.mutable_data_ptr());
    bytes[2] ^= 0x40;  // A bit that no rounding drops.
  }
  at::Tensor tensor;
  int64_t step, times;
};

struct Heard : Observer {
  void noted(const std::string& line) override { notes.push_back(line); }
  void went_back(int64_t step) override { notes.push_back(fmt::format("back to {}", step)); }
  void saved(int64_t step, const std::string&) override { saved_steps.push_back(step); }
  std::vector<std::string> notes;
  std::vector<int64_t> saved_steps;
};

/// Makes one step longer than a second.
struct Pause : Observer {
  void stepped(const StepEvent& e) override {
    if (e.step == 12) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
};

struct FlipCase {
  int rank = 0;
  int64_t step = -1, times = 1;
  bool in_optimizer = false;
};

class DistributedTrainers : public Trainers {
 protected:
  struct Ran {
    std::vector<std::string> notes;  // Notes of the first process.
    std::vector<at::Tensor> parameters;
    std::vector<int64_t> saved_steps;
  };

  Ran run_ranks(int size, TrainConfig config, const FlipCase& flip) {
    fs::remove_all(folder_);
    Ran ran;
    parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
      const auto model =
          model::make_mlp({}, {.channels = 1, .height = 4, .width = 4, .classes = 3}, 1);
      const auto length = Length::of(config, kBatch, images_.size()).for_schedules();
      const auto optimizer = optim::make_wrapped("sgd momentum=0.9", "[]", model->parameters(),
                                                 model->buffers(), length);
      NamedTensors parameters = model->parameters();
      if (has_spare_) parameters.push_back({"spare", at::zeros({3}).set_requires_grad(true)});
      const auto strategy = parallel::make_ddp(ddp_, collectives, {parameters, model->buffers()});
      static const auto kSchedules = schedule::built_in_schedules();
      const auto schedule = kSchedules.build(config::Component(kSchedules, "constant"), length);
      CheckpointStore checkpoints(folder_ / "checkpoints");
      StopRequest stop;
      Heard heard;
      Flip flips(flip.in_optimizer ? optimizer->state().front().tensor
                                   : model->parameters().front().tensor.detach(),
                 collectives.rank() == flip.rank ? flip.step : -1, flip.times);
      data::LoaderConfig loader{.batch = kBatch, .threads = 0};
      loader.part = collectives.rank();
      loader.parts = collectives.size();
      StepConfig step_config{.strategy = strategy.get()};
      int64_t pushes = 0, waits = 0;
      Pause pause;
      std::vector<Observer*> observers = {&heard, &flips};
      if (is_late_) {
        observers.push_back(&pause);
        step_config.make_results = [&](c10::Device, int64_t most_numbers) {
          return std::make_unique<LateResults>(pushes, waits, most_numbers);
        };
      }
      Trainer trainer({.model = *model,
                       .optimizer = *optimizer,
                       .schedule = *schedule,
                       .train_samples = images_,
                       .checkpoints = checkpoints,
                       .observers = observers,
                       .stop = stop},
                      config, step_config, loader, {.loader = loader});
      trainer.run();
      if (collectives.rank() > 0) return;
      ran.notes = heard.notes;
      ran.saved_steps = heard.saved_steps;
      for (const auto& parameter : model->parameters()) {
        ran.parameters.push_back(parameter.tensor.detach().clone());
      }
    });
    return ran;
  }

  RandomImages images_;
  bool has_spare_ = false;  // Whether the model has an unused parameter.
  bool is_late_ = false;    // Whether results arrive late, and a step takes longer than a second.
  parallel::DdpConfig ddp_;
  TrainConfig config_{.steps = 30,
                      .evaluate_every = "never",
                      .checkpoint_every = "10 steps",
                      .compare_every = "4 steps"};
};

void expect_equal(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
}

TEST_F(DistributedTrainers, NameTheOneInWhichABitHasFlippedAndRepeatTheSteps) {
  for (const bool in_optimizer : {false, true}) {
    const auto undisturbed = run_ranks(3, config_, {});
    EXPECT_TRUE(undisturbed.notes.empty());
    EXPECT_EQ(undisturbed.saved_steps, (std::vector<int64_t>{10, 20, 30}));
    const auto disturbed =
        run_ranks(3, config_, {.rank = 2, .step = 13, .in_optimizer = in_optimizer});
    ASSERT_EQ(disturbed.notes.size(), 2U);
    EXPECT_NE(disturbed.notes[0].find("step 16: rank 2 on "), std::string::npos)
        << disturbed.notes[0];
    EXPECT_NE(disturbed.notes[0].find("has different weights or states than the rest"),
              std::string::npos);
    EXPECT_TRUE(disturbed.notes[0].ends_with("All repeat the steps after 10"))
        << disturbed.notes[0];
    EXPECT_EQ(disturbed.notes[1], "back to 10");
    expect_equal(disturbed.parameters, undisturbed.parameters);
  }
}

// Steps that are in flight when the time has come request a checkpoint as well.
TEST_F(DistributedTrainers, SaveOnceWhenATimeHasCome) {
  is_late_ = true;
  config_.steps = 60;
  config_.checkpoint_every = "1 s";
  config_.compare_every = "never";
  const double begin = monotonic_seconds();
  const Ran ran = run_ranks(2, config_, {});
  EXPECT_GE(ran.saved_steps.size(), 2U);
  EXPECT_LE(static_cast<double>(ran.saved_steps.size()), monotonic_seconds() - begin + 1);
}

// With two processes, the faulty one is unknown until the step has been repeated.
TEST_F(DistributedTrainers, OfTwoTheOneIsNamedAfterTheRepetition) {
  config_.compare_every = "1 steps";
  const auto undisturbed = run_ranks(2, config_, {});
  for (const int rank : {0, 1}) {
    const auto disturbed = run_ranks(2, config_, {.rank = rank, .step = 17});
    ASSERT_EQ(disturbed.notes.size(), 3U);
    EXPECT_NE(disturbed.notes[0].find("step 17: rank 0 on "), std::string::npos);
    EXPECT_NE(disturbed.notes[0].find("differ in weights or states"), std::string::npos);
    EXPECT_NE(disturbed.notes[2].find(fmt::format("rank {} on ", rank)), std::string::npos)
        << disturbed.notes[2];
    expect_equal(disturbed.parameters, undisturbed.parameters);
  }
}

// State that was not compared is not saved.
TEST_F(DistributedTrainers, NothingIsSavedThatIsNotTheSameInAll) {
  config_.compare_every = "1000 steps";
  const auto disturbed = run_ranks(2, config_, {.rank = 1, .step = 19});
  ASSERT_FALSE(disturbed.notes.empty());
  EXPECT_NE(disturbed.notes[0].find("step 20: "), std::string::npos);
  EXPECT_EQ(disturbed.saved_steps, (std::vector<int64_t>{10, 20, 30}));
}

TEST_F(DistributedTrainers, GiveUpWhereItHappensAgainAndAgain) {
  EXPECT_NE(error_of([&] {
              run_ranks(3, config_, {.rank = 1, .step = 13, .times = 10});
            }).find("this happened 3 times, which is too often"),
            std::string::npos);
}

TEST_F(DistributedTrainers, EndWhereThereIsNothingToGoBackTo) {
  EXPECT_NE(error_of([&] {
              run_ranks(2, config_, {.step = 3});
            }).find("there is no checkpoint yet to go back to"),
            std::string::npos);
}

TEST_F(DistributedTrainers, DoesNotCompareWithoutTheOption) {
  config_.compare_every = "never";
  EXPECT_TRUE(run_ranks(2, config_, {.rank = 1, .step = 13}).notes.empty());
}

TEST_F(DistributedTrainers, NameWhatGetsNoGradient) {
  has_spare_ = true;
  const auto notes = run_ranks(2, config_, {}).notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("parameters got no gradient, which counts as 0: spare"),
            std::string::npos)
      << notes[0];
}

TEST_F(DistributedTrainers, SaveInSlicesAndGoOnInAnotherNumber) {
  config_.checkpoint_slice = "100 bytes";
  const auto ran = run_ranks(3, config_, {});
  const CheckpointStore store(folder_ / "checkpoints");
  EXPECT_TRUE(fs::exists(store.newest()->folder / "model-00003-of-00003.safetensors"));
  const auto model = model::make_mlp({}, {.channels = 1, .height = 4, .width = 4, .classes = 3}, 2);
  store.load_model(*store.newest(), model->parameters());
  std::vector<at::Tensor> loaded;
  for (const auto& parameter : model->parameters()) loaded.push_back(parameter.tensor.detach());
  expect_equal(loaded, ran.parameters);
}

// The error feedback is saved per process in checkpoints.
TEST_F(DistributedTrainers, RepeatStepsOfPowerSgd) {
  ddp_.compression = {.format = "powersgd", .rank = 1};
  const auto undisturbed = run_ranks(3, config_, {});
  const CheckpointStore store(folder_ / "checkpoints");
  EXPECT_TRUE(fs::exists(store.newest()->folder / "state-00003-of-00003.safetensors"));
  const auto disturbed = run_ranks(3, config_, {.rank = 2, .step = 13});
  EXPECT_EQ(disturbed.notes.size(), 2U);
  expect_equal(disturbed.parameters, undisturbed.parameters);
}

}  // namespace
}  // namespace gallop::train
