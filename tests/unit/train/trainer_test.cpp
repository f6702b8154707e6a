#include "gallop/train/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <random>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/model/mlp.h"
#include "gallop/model/model.h"
#include "gallop/schedule/schedule.h"
#include "gallop/schedule/variation.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

constexpr int64_t kBatch = 4;

/// Images 1 x 4 x 4 of three classes; one may be not a number, one far from the others.
class RandomImages final : public data::Samples {
 public:
  explicit RandomImages(int64_t bad = -1, int64_t loud = -1) : bad_(bad), loud_(loud) {}
  int64_t size() const override { return 64; }
  data::RowShape input_shape() const override { return {{1, 4, 4}, c10::kFloat}; }
  data::RowShape target_shape() const override { return {{}, c10::kLong}; }
  std::unique_ptr<data::Scratch> make_scratch() const override {
    return std::make_unique<data::Scratch>();
  }
  bool fill(int64_t index, int64_t, void* input_row, void* target_row,
            data::Scratch&) const override {
    std::mt19937 random(static_cast<unsigned>(index));
    std::normal_distribution<float> normal;
    for (int i = 0; i < 16; ++i) static_cast<float*>(input_row)[i] = normal(random);
    if (index == bad_) {
      static_cast<float*>(input_row)[0] = std::numeric_limits<float>::quiet_NaN();
    }
    if (index == loud_) {
      for (int i = 0; i < 16; ++i) static_cast<float*>(input_row)[i] *= 1000;
    }
    *static_cast<int64_t*>(target_row) = index % 3;
    return true;
  }

 private:
  int64_t bad_, loud_;
};

/// A device whose numbers arrive only when they are waited for.
struct LateReadings final : StepReadings {
  LateReadings(int64_t& pushes_, int64_t& waits_) : pushes(pushes_), waits(waits_) {}
  void push(const at::Tensor& numbers) override {
    pushes += 1;
    under_way.push_back(numbers.clone());
  }
  bool is_there() const override { return under_way.empty(); }
  bool is_full() const override { return under_way.size() == 10; }
  int64_t most() const override { return 10; }
  std::vector<double> pop() override {
    waits += 1;
    const at::Tensor oldest = under_way.front();
    under_way.pop_front();
    const auto* data = oldest.const_data_ptr<double>();
    return {data, data + oldest.numel()};
  }
  std::deque<at::Tensor> under_way;
  int64_t &pushes, &waits;
};

/// What the trainer said, a line each.
struct Told : Observer {
  explicit Told(const int64_t& pushes_) : pushes(pushes_) {}
  void stepped(const StepEvent& e) override {
    lines.push_back(
        fmt::format("step {} of {} epoch {} lr {} varied {} loss {} norm {} accuracy {} skipped {}",
                    e.step, e.steps, e.epoch, e.lr, e.varied.empty() ? 0 : e.varied.front(), e.loss,
                    e.gradient_norm, e.accuracy.value_or(-1), e.skipped_updates));
    started_before.push_back(pushes);
  }
  void evaluated(const EvaluationEvent& e) override {
    lines.push_back(
        fmt::format("evaluation at {}: {} {}", e.step, e.evaluation.tally.loss(), e.best));
  }
  void saved(int64_t step, const std::string&) override {
    lines.push_back(fmt::format("saved at {}", step));
  }
  const int64_t& pushes;
  std::vector<std::string> lines;
  std::vector<int64_t> started_before;  // Steps, when each was told.
};

/// Asks for a stop after a step.
struct StopsAt : Observer {
  StopsAt(StopRequest& stop_, int64_t step_) : stop(stop_), step(step_) {}
  void stepped(const StepEvent& e) override {
    if (e.step == step) stop.request(-1);
  }
  StopRequest& stop;
  int64_t step;
};

struct Trained {
  int64_t pushes = 0, waits = 0;
  Told told{pushes};
  std::vector<at::Tensor> parameters;
  std::string error;
  Outcome outcome;
};

class Trainers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("gallop-trainer-{}", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Trained> run(bool late, TrainConfig config, StepConfig step_config = {},
                               int64_t bad = -1) {
    return run_schedule("{name: cosine}", late, config, step_config, bad);
  }

  // Continues from the newest checkpoint where there is one.
  std::unique_ptr<Trained> run_schedule(const std::string& yaml, bool late, TrainConfig config,
                                        StepConfig step_config = {}, int64_t bad = -1,
                                        int64_t stop_at = -1, const std::string& smoothing = {}) {
    auto run = std::make_unique<Trained>();
    const model::ModelRegistry models = model::built_in_models();
    const schedule::ScheduleRegistry schedules = schedule::built_in_schedules();
    const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
    const auto model = models.build(config::Component(models, "mlp"), task, 1);
    schedule::VariationConfig chosen(schedules), vary(schedules);
    config::Problems problems;
    for (const auto& [text, part] : {std::pair{&yaml, &chosen}, std::pair{&smoothing, &vary}}) {
      config::read_fields(
          config::parse_yaml(*text, "recipe"), [&](config::Visitor& v) { visit(v, *part); },
          problems);
    }
    problems.throw_if_any();
    const RandomImages images(bad, loud_);
    CheckpointStore checkpoints(folder_ / (late ? "late" : "at-once"), {.keep_last = keep_last_});
    const auto length = Length::of(config, kBatch, images.size()).for_schedules();
    const auto schedule = schedules.build(chosen.schedule, length);
    const auto optimizer =
        optim::make_wrapped(optimizer_, wrappers_, model->parameters(), model->buffers(), length);
    std::optional<schedule::Variation> variation;
    if (vary.varies()) variation.emplace("label_smoothing", vary, config.label_smoothing, length);
    std::vector<VariedValue> varied;
    if (variation) {
      varied.push_back({Value::kLabelSmoothing, [&](double p) { return variation->at(p); },
                        &variation->schedule()});
    }
    if (schedule::has_momentum(*schedule)) {
      varied.push_back(
          {Value::kMomentum, [&](double p) { return schedule->momentum(p).value_or(0.9); }});
    }
    StopRequest stop;
    StopsAt stops(stop, stop_at);
    if (late) {
      step_config.make_readings = [&](c10::Device) -> std::unique_ptr<StepReadings> {
        return std::make_unique<LateReadings>(run->pushes, run->waits);
      };
    }
    const data::LoaderConfig loader{.batch = kBatch, .threads = 0};
    Trainer trainer({.model = *model,
                     .optimizer = *optimizer,
                     .schedule = *schedule,
                     .varied = varied,
                     .train_samples = images,
                     .evaluation_samples = bad < 0 ? &images : nullptr,
                     .checkpoints = checkpoints,
                     .observers = {&run->told, &stops},
                     .stop = stop,
                     .teacher = teacher_},
                    config, step_config, loader, {.loader = loader});
    if (resume_from_) {
      trainer.resume(*resume_from_);
    } else if (const auto newest = checkpoints.newest()) {
      trainer.resume(*newest);
    }
    try {
      run->outcome = trainer.run();
    } catch (const DataError& error) {
      run->error = error.what();
    }
    model_names_.clear();
    for (const auto& parameter : model->parameters()) {
      model_names_.push_back(parameter.name);
      run->parameters.push_back(parameter.tensor.detach().clone());
    }
    return run;
  }

  fs::path folder_;
  std::string optimizer_ = "sgd", wrappers_ = "[]";
  std::optional<CheckpointInfo> resume_from_;
  std::string teacher_;
  int64_t loud_ = -1;
  int64_t keep_last_ = 10;
  std::vector<std::string> model_names_;  // Of the last run's parameters.
};

// Those too that train at other weights than they evaluate and save.
TEST_F(Trainers, ContinueEveryOptimizerBitForBit) {
  const TrainConfig config{
      .steps = 24, .evaluate_every = "7 steps", .checkpoint_every = "10 steps"};
  for (const std::string& name : every_optimizer()) {
    for (const auto& [wrapping, wrappers] : optim::every_wrapping()) {
      if (!optim::can_wrap(name, wrappers)) continue;
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
      for (size_t i = 0; i < resumed->parameters.size(); ++i) {
        EXPECT_TRUE(at::equal(resumed->parameters[i], undisturbed->parameters[i]));
      }
      EXPECT_EQ(resumed->told.lines.back(), undisturbed->told.lines.back());
    }
  }
}

// Where the averaged phase begins between two checkpoints, and where it has not begun.
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
  // Near, as an average is.
  EXPECT_LT((x - y).abs().max().item<double>(), 0.1);
}

TEST_F(Trainers, LateNumbersTellTheSame) {
  const TrainConfig config{
      .steps = 45, .evaluate_every = "12 steps", .checkpoint_every = "20 steps"};
  for (const StepConfig& step : {StepConfig{}, StepConfig{.clip = 0.5}}) {
    fs::remove_all(folder_);
    const auto at_once = run(false, config, step), late = run(true, config, step);
    EXPECT_EQ(late->error, "");
    EXPECT_EQ(late->told.lines, at_once->told.lines);
    EXPECT_EQ(at_once->waits, 0);
    EXPECT_EQ(late->waits, 45);
    for (size_t i = 0; i < late->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(late->parameters[i], at_once->parameters[i]));
    }
  }
}

// The oldest once the host is ten steps ahead; all of them before an evaluation or a checkpoint.
TEST_F(Trainers, NothingIsWaitedForUntilItIsDue) {
  const auto started_before = [&](const TrainConfig& config) {
    fs::remove_all(folder_);
    return run(true, config)->told.started_before;
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

TEST_F(Trainers, ALossThatIsNotFiniteIsToldWithItsStep) {
  const TrainConfig stops{.steps = 40, .checkpoint_every = "7 steps"};
  const auto at_once = run(false, stops, {}, 50), late = run(true, stops, {}, 50);
  EXPECT_NE(at_once->error, "");
  EXPECT_NE(at_once->error.find("the loss is not finite"), std::string::npos) << at_once->error;
  EXPECT_EQ(late->error.substr(0, late->error.find(" The last")),
            at_once->error.substr(0, at_once->error.find(" The last")));
  EXPECT_EQ(late->told.lines, at_once->told.lines);
}

TEST_F(Trainers, SkippedUpdatesAreCounted) {
  const TrainConfig skips{.steps = 40, .checkpoint_every = "7 steps", .on_nonfinite = "skip"};
  const auto run_it = [&](bool late) {
    return run_schedule("{name: constant}", late, skips, {}, /*bad=*/50);
  };
  const auto at_once = run_it(false), late = run_it(true);
  EXPECT_GT(at_once->outcome.skipped_updates, 0);
  EXPECT_EQ(late->outcome.skipped_updates, at_once->outcome.skipped_updates);
  EXPECT_EQ(late->told.lines, at_once->told.lines);
  for (size_t i = 0; i < late->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(late->parameters[i], at_once->parameters[i]));
  }
}

// The rates of a run's steps as it told them.
std::vector<std::string> rates_of(const Trained& trained) {
  std::vector<std::string> rates;
  for (const std::string& line : trained.told.lines) {
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
    const bool was_skipped =
        trained->told.lines[step].find(fmt::format("skipped {}", behind + 1)) != std::string::npos;
    behind += was_skipped ? 1 : 0;
  }
  EXPECT_EQ(behind, static_cast<size_t>(trained->outcome.skipped_updates));
  EXPECT_GE(behind, 2u);
  // The run itself is no longer for it.
  EXPECT_EQ(trained->outcome.step, 40);
}

// A skipped update counts nine steps later where ten results may be under way, whether they are or
// not: a run that is stopped, and so has waited for them, goes on with the same rates.
TEST_F(Trainers, WhatIsHeldDoesNotDependOnWhenResultsCame) {
  const TrainConfig skips{.steps = 40, .checkpoint_every = "never", .on_nonfinite = "skip"};
  const auto whole = run(true, skips, {}, 50);
  const auto late = rates_of(*whole);
  fs::remove_all(folder_);
  const auto free = rates_of(*run(false, {.steps = 40, .evaluate_every = "never"}));
  std::vector<size_t> skipped;
  for (size_t step = 0; step < late.size(); ++step) {
    if (whole->told.lines[step].find(fmt::format("skipped {}", skipped.size() + 1)) !=
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
  // Losses of fp16 overflow on the way to a scale: 65536 is too much for the first steps.
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

TEST_F(Trainers, ContinueInFp8BitForBit) {
  const TrainConfig config{.steps = 30, .evaluate_every = "10 steps", .checkpoint_every = "never"};
  StepConfig fp8{.precision = precision::Precision::kFp8};
  fp8.compile = compile::CompileConfig();
  const auto whole = run(false, config, fp8);
  fs::remove_all(folder_);
  run_schedule("{name: cosine}", false, config, fp8, -1, 7);
  const auto rest = run(false, config, fp8);
  fs::remove_all(folder_);
  const auto bf16 = run(false, config, {.precision = precision::Precision::kBf16});
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(rest->parameters[i], whole->parameters[i]));
  }
  EXPECT_FALSE(at::equal(bf16->parameters[0], whole->parameters[0]));
}

TEST_F(Trainers, EndsEarlyWithoutABetterMetric) {
  TrainConfig config{.epochs = 10, .early_stopping = {.patience = 2, .min_change = 10}};
  const auto accuracy = run(false, config);
  EXPECT_TRUE(accuracy->outcome.finished);
  EXPECT_EQ(accuracy->outcome.step, 48);
  EXPECT_EQ(accuracy->outcome.steps, 160);
  EXPECT_EQ(accuracy->outcome.ended_early, "no better accuracy in 2 evaluations");
  fs::remove_all(folder_);
  config.metric = "loss";
  EXPECT_EQ(run(false, config)->outcome.ended_early, "no better loss in 2 evaluations");
  fs::remove_all(folder_);
  config.early_stopping.min_change = 0;
  config.epochs = 2;
  const auto whole = run(false, config);
  EXPECT_EQ(whole->outcome.step, 32);
  EXPECT_EQ(whole->outcome.ended_early, "");
}

TEST_F(Trainers, EndsWithTheBestWeightsWhereThatIsWanted) {
  // On few guesses the accuracy does not rise at every evaluation.
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
  // The last has the weights that the run ends with.
  const auto trained = run_schedule("{name: cosine-restarts, period: 0.25}", false, config);
  const CheckpointStore store(folder_ / "at-once");
  EXPECT_EQ(store.snapshots().back().folder, store.newest()->folder);
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

TrainConfig spikes(const std::string& action, int64_t steps, int64_t limit = 10) {
  TrainConfig config{.steps = steps, .evaluate_every = "never", .checkpoint_every = "5 steps"};
  config.spikes = {.action = action, .threshold = 8, .window = 6, .limit = limit};
  return config;
}

StepConfig compiled_spikes(const TrainConfig& config) {
  return {.spikes = config.spikes, .compile = compile::CompileConfig()};
}

// Of a run in which one sample of 64 makes the loss jump, once an epoch of 16 steps.
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
  EXPECT_EQ(late->told.lines, whole->told.lines);
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
  // The step of the first spike after that of a checkpoint.
  const TrainConfig long_run = spikes("skip", 64);
  const auto skipped = train(long_run);
  int64_t spike = 0;
  for (const std::string& line : skipped->told.lines) {
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

// Also where saves at a stop lie between, which nobody goes back to, and one checkpoint is kept.
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
  EXPECT_NE(back->error.find("takes rewind number 2, and train.spikes.limit is 1"),
            std::string::npos)
      << back->error;
  fs::remove_all(folder_);
  // All that is above the mean counts: soon two in a row.
  TrainConfig config = spikes("skip", 200, /*limit=*/1);
  config.spikes.threshold = 1e-3;
  config.spikes.window = 2;
  const auto skipping = train(config);
  EXPECT_NE(skipping->error.find("is spike number 2 in a row, and train.spikes.limit is 1"),
            std::string::npos)
      << skipping->error;
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

TEST_F(Trainers, AValueThatVariesIsResumedToTheBit) {
  const std::string plateau =
      "{name: chained, to: 0.5, members: [linear, {reduce-on-plateau: {patience: 0, threshold: "
      "0.5}}]}";
  const TrainConfig config{.steps = 40,
                           .label_smoothing = 0.1,
                           .evaluate_every = "4 steps",
                           .checkpoint_every = "never"};
  const auto run_it = [&](int64_t stop_at) {
    return run_schedule("{name: cosine}", false, config, {}, -1, stop_at, plateau);
  };
  const auto whole = run_it(-1);
  fs::remove_all(folder_);
  auto lines = run_it(18)->told.lines;
  ASSERT_EQ(lines.back(), "saved at 18");
  lines.pop_back();
  const auto rest = run_it(-1);
  lines.insert(lines.end(), rest->told.lines.begin(), rest->told.lines.end());
  EXPECT_EQ(lines, whole->told.lines);
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(whole->parameters[i], rest->parameters[i]));
  }
  // From 0.1 at the start: evaluations have moved it to 0.5 faster than the line alone.
  EXPECT_NE(lines.front().find("varied 0.1"), std::string::npos) << lines.front();
  EXPECT_NE(lines[lines.size() - 3].find("varied 0.49"), std::string::npos) << lines.back();
}

// What evaluations have done to the schedule is in the checkpoint.
TEST_F(Trainers, AScheduleThatFollowsEvaluationsIsResumedToTheBit) {
  const std::string plateau =
      "{name: reduce-on-plateau, patience: 0, cooldown: 1, threshold: 0.5, factor: 0.7}";
  const TrainConfig config{.steps = 40, .evaluate_every = "4 steps", .checkpoint_every = "never"};
  const auto whole = run_schedule(plateau, false, config);
  fs::remove_all(folder_);
  auto lines = run_schedule(plateau, false, config, {}, -1, 18)->told.lines;
  EXPECT_EQ(lines.back(), "saved at 18");
  lines.pop_back();
  const auto rest = run_schedule(plateau, false, config);
  lines.insert(lines.end(), rest->told.lines.begin(), rest->told.lines.end());
  EXPECT_EQ(lines, whole->told.lines);
  for (size_t i = 0; i < whole->parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(whole->parameters[i], rest->parameters[i]));
  }
  // The rate has fallen before and after.
  const auto has = [&](const char* lr) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(lr) != std::string::npos; });
  };
  EXPECT_TRUE(has("lr 0.069") && has("lr 0.034")) << lines.back();
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
  EXPECT_EQ(error_of(never, -1),
            "the schedule follows evaluations, but there are none: train.evaluate_every is never");
  EXPECT_EQ(error_of({.steps = 4}, 60),
            "the schedule follows evaluations, but there are none: the data have no part to "
            "evaluate on");
}

// A sequence that has a momentum in its second half.
TEST_F(Trainers, TheMomentumOfAScheduleIsResumedToTheBit) {
  const std::string cycle =
      "{name: sequence, milestones: [0.5], members: [constant, {one-cycle: {base_momentum: 0.3, "
      "max_momentum: 0.9}}]}";
  const TrainConfig config{.steps = 24, .evaluate_every = "never", .checkpoint_every = "never"};
  for (const std::string name : {"sgd", "adam"}) {
    optimizer_ = name;
    fs::remove_all(folder_);
    const auto whole = run_schedule(cycle, false, config);
    fs::remove_all(folder_);
    auto lines = run_schedule(cycle, false, config, {}, -1, 15)->told.lines;
    ASSERT_EQ(lines.back(), "saved at 15");
    lines.pop_back();
    const auto rest = run_schedule(cycle, false, config);
    lines.insert(lines.end(), rest->told.lines.begin(), rest->told.lines.end());
    EXPECT_EQ(lines, whole->told.lines);
    EXPECT_NE(lines[2].find("varied 0.9 "), std::string::npos) << lines[2];
    EXPECT_NE(lines[15].find("varied 0.3"), std::string::npos) << lines[15];
    for (size_t i = 0; i < whole->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(whole->parameters[i], rest->parameters[i])) << name;
    }
  }
}

// Of each schedule with its defaults, or around a member where it has none.
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
    for (size_t i = 0; i < whole->parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(whole->parameters[i], rest->parameters[i]));
    }
  }
}

TEST_F(Trainers, EpochsAndStepsOfAScheduleAreThoseOfTheRun) {
  // 16 steps an epoch.
  const auto told = run_schedule("{name: multi-step, milestones: [5 steps, 1 epoch]}", false,
                                 {.steps = 20, .evaluate_every = "never"})
                        ->told.lines;
  for (const auto& [step, lr] : std::vector<std::pair<int, const char*>>{
           {4, "lr 0.1 "}, {5, "lr 0.010"}, {15, "lr 0.010"}, {16, "lr 0.0010"}}) {
    EXPECT_NE(told[static_cast<size_t>(step)].find(lr), std::string::npos)
        << told[static_cast<size_t>(step)];
  }
}

}  // namespace
}  // namespace gallop::train
