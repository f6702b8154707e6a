// The samples that a trainer sees if a resume changes the batch size or number of processes.
#include <algorithm>
#include <mutex>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/parallel/ddp.h"
#include "unit/base/error_of.h"
#include "unit/data/image_fields.h"
#include "unit/parallel/ranks.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

/// Images that record which indices are read, by epoch.
class SeenImages final : public data::Samples {
 public:
  explicit SeenImages(int64_t size) : Samples(data::image_fields({1, 4, 4})), size_(size) {}
  int64_t size() const override { return size_; }
  bool fill(int64_t index, int64_t epoch, const data::SampleRow& row,
            data::Scratch& scratch) const override {
    {
      const std::lock_guard lock(mutex_);
      seen_.emplace_back(epoch, index);
    }
    return images_.fill(index, epoch, row, scratch);
  }

  // Expects each sample of each epoch exactly once.
  void expect_epochs(int64_t epochs) {
    std::sort(seen_.begin(), seen_.end());
    std::vector<std::pair<int64_t, int64_t>> wanted;
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      for (int64_t i = 0; i < size_; ++i) wanted.emplace_back(epoch, i);
    }
    EXPECT_EQ(seen_, wanted);
  }

 private:
  int64_t size_;
  RandomImages images_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<int64_t, int64_t>> seen_;
};

struct Rates : Observer {
  void stepped(const StepEvent& e) override {
    lrs.push_back(e.lr);
    last = e;
  }
  void evaluated(const EvaluationEvent& e) override { evaluations.push_back(e.step); }
  std::vector<double> lrs;
  std::vector<int64_t> evaluations;
  StepEvent last;
};

class SamplesOfTrainers : public Trainers {
 protected:
  struct Part {
    int64_t batch = 16;
    int processes = 1;
    int64_t gradient_accumulation = 1;
    Interval until{};
  };

  // Trains one segment of a run, resuming from the end of the previous one.
  Rates train(const data::Samples& images, const Part& part, TrainConfig config = {.epochs = 3}) {
    config.gradient_accumulation = part.gradient_accumulation;
    config.checkpoint_in_background = false;
    config.evaluate_every = evaluate_every_;
    Rates rates;
    parallel::run_ranks(part.processes, [&](parallel::Collectives& collectives) {
      const auto model =
          model::make_mlp({}, {.channels = 1, .height = 4, .width = 4, .classes = 3}, 1);
      CheckpointStore checkpoints(folder_ / "checkpoints");
      const auto newest = checkpoints.newest();
      BatchHistory history = new_history(config, part.batch, images.size());
      if (newest) history = BatchHistory::resumed(checkpoints.read_trainer(*newest), history);
      const Length length = Length::of(config, history);
      const auto optimizer = optim::make_wrapped("sgd", "[]", model->parameters(), model->buffers(),
                                                 length.for_updates());
      const auto strategy =
          parallel::make_ddp({}, collectives, {model->parameters(), model->buffers()});
      static const auto kSchedules = schedule::built_in_schedules();
      const auto schedule =
          kSchedules.build(config::Component(kSchedules, "linear"), length.for_schedules());
      StopRequest stop;
      Rates heard;
      data::LoaderConfig loader{.batch = part.batch, .threads = 0};
      loader.part = collectives.rank();
      loader.parts = collectives.size();
      const RandomImages evaluated;
      Trainer trainer(
          {.model = *model,
           .optimizer = *optimizer,
           .schedule = *schedule,
           .train_samples = images,
           .evaluation_samples = &evaluated,
           .checkpoints = checkpoints,
           .stop = stop,
           .until = part.until},
          config, {.gradient_accumulation = part.gradient_accumulation, .strategy = strategy.get()},
          loader, {.loader = {.batch = 64}, .collectives = &collectives});
      trainer.observe({&heard});
      if (newest) trainer.resume(newest);
      trainer.run();
      if (collectives.rank() == 0) rates = heard;
    });
    return rates;
  }

  std::string evaluate_every_ = "1 epoch";
};

Interval steps(int64_t count) {
  return {.unit = Interval::Unit::kSteps, .count = static_cast<double>(count)};
}

// 50 samples per epoch, so that segments end within epochs and within batches of the next size.
TEST_F(SamplesOfTrainers, AreEachSeenOncePerEpochWhateverChanges) {
  const std::vector<std::vector<Part>> runs = {
      {{.batch = 16, .until = steps(2)}, {.batch = 10}},
      {{.batch = 10, .until = steps(3)}, {.batch = 16, .until = steps(5)}, {.batch = 7}},
      {{.batch = 16, .until = steps(5)}, {.batch = 16, .gradient_accumulation = 4}},
      {{.batch = 16, .until = steps(1)},
       {.batch = 16, .processes = 2, .until = steps(6)},
       {.batch = 16}},
      {{.batch = 9, .processes = 2, .until = steps(3)},
       {.batch = 20, .until = steps(5)},
       {.batch = 16}},
      {{.batch = 16, .until = steps(2)},
       {.batch = 10, .processes = 3, .gradient_accumulation = 2, .until = steps(4)},
       {.batch = 64, .processes = 2, .until = steps(5)},
       {.batch = 1}},
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(i);
    fs::remove_all(folder_);
    SeenImages images(50);
    Rates last;
    for (const Part& part : runs[i]) last = train(images, part);
    EXPECT_EQ(last.last.epoch, 3);
    EXPECT_EQ(last.last.step, last.last.steps);
    images.expect_epochs(3);
  }
}

// 8, 16 and 32 samples for a sixth of the run each: 25 samples, which take 4 batches, up to 50,
// which is the end of the epoch, and then 75.
TEST_F(SamplesOfTrainers, AreEachSeenOncePerEpochWhileBatchesBecomeLarger) {
  const TrainConfig config{.epochs = 3, .rampup_batch_size = {.start = 8}};
  const std::vector<std::vector<Part>> runs = {
      {{.batch = 64}},
      {{.batch = 64, .until = steps(3)}, {.batch = 64}},
      {{.batch = 64, .until = steps(4)}, {.batch = 64, .processes = 3}},
      {{.batch = 64, .processes = 2, .until = steps(6)}, {.batch = 64}},
  };
  std::vector<double> whole;
  for (size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(i);
    fs::remove_all(folder_);
    SeenImages images(50);
    Rates last;
    std::vector<double> lrs;
    for (const Part& part : runs[i]) {
      last = train(images, part, config);
      lrs.insert(lrs.end(), last.lrs.begin(), last.lrs.end());
    }
    EXPECT_EQ(last.last.epoch, 3);
    images.expect_epochs(3);
    // 8 8 8 8, 16 and 2 to the end of the epoch, 32 and 18, and the third epoch at once.
    EXPECT_EQ(last.last.step, 9);
    if (i == 0) whole = lrs;
    EXPECT_EQ(lrs, whole);
  }
  // Another size ends the ramp-up.
  fs::remove_all(folder_);
  SeenImages images(50);
  train(images, {.batch = 64, .until = steps(3)}, config);
  EXPECT_EQ(train(images, {.batch = 25}, config).last.step, 3 + 2 + 4);
  images.expect_epochs(3);
}

// The learning rate of a sample is independent of how previous samples were batched.
TEST_F(SamplesOfTrainers, KeepTheScheduleAndTheEvaluations) {
  const RandomImages images;
  for (const int64_t batch : {32, 8}) {
    fs::remove_all(folder_);
    train(images, {.batch = 16, .until = steps(8)}, {.epochs = 4});
    const Rates rest = train(images, {.batch = batch}, {.epochs = 4});
    ASSERT_EQ(rest.lrs.size(), static_cast<size_t>(128 / batch));
    EXPECT_EQ(rest.evaluations, (std::vector<int64_t>{8 + 64 / batch, 8 + 128 / batch}));
    fs::remove_all(folder_);
    const Rates whole = train(images, {.batch = batch}, {.epochs = 4});
    const std::vector<double> second_half(
        whole.lrs.end() - static_cast<std::ptrdiff_t>(rest.lrs.size()), whole.lrs.end());
    EXPECT_EQ(rest.lrs, second_half);
  }
}

TEST_F(SamplesOfTrainers, OfARunInStepsHaveAScheduleWithoutAJump) {
  const RandomImages images;
  const Rates first = train(images, {.batch = 16, .until = steps(8)}, {.steps = 16});
  const Rates rest = train(images, {.batch = 32}, {.steps = 16});
  ASSERT_EQ(rest.lrs.size(), 8U);
  fs::remove_all(folder_);
  const Rates whole = train(images, {.batch = 16}, {.steps = 16});
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(first.lrs[i], whole.lrs[i]);
    EXPECT_DOUBLE_EQ(rest.lrs[i], whole.lrs[8 + i]);
  }
}

TEST_F(SamplesOfTrainers, RefuseAnEndBeforeWhatIsDone) {
  const RandomImages images;
  train(images, {.batch = 16, .until = steps(8)}, {.epochs = 4});
  const std::string error = error_of([&] { train(images, {.batch = 16}, {.epochs = 1}); });
  EXPECT_NE(error.find("train.epochs=1 is less than the run has done already, 8 steps or 2 epochs"),
            std::string::npos)
      << error;
  EXPECT_NE(error_of([&] { train(images, {.batch = 16}, {.steps = 7}); }).find("train.steps=7"),
            std::string::npos);
  // A resume may find the run complete.
  EXPECT_TRUE(train(images, {.batch = 16}, {.epochs = 2}).lrs.empty());
}

}  // namespace
}  // namespace gallop::train
