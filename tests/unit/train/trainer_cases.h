#pragma once

#include <unistd.h>

#include <deque>
#include <limits>
#include <optional>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/model/mlp.h"
#include "gallop/model/model.h"
#include "gallop/schedule/schedule.h"
#include "gallop/schedule/scheduled_value.h"
#include "gallop/train/trainer.h"
#include "unit/data/image_fields.h"
#include "unit/train/trainee.h"

namespace gallop::train {

constexpr int64_t kBatch = 4;

/// Images 1 x 4 x 4 of three classes; one may be NaN and one an outlier.
class RandomImages final : public data::Samples {
 public:
  explicit RandomImages(int64_t bad = -1, int64_t loud = -1)
      : Samples(data::image_fields({1, 4, 4})), bad_(bad), loud_(loud) {}
  int64_t size() const override { return 64; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    auto* const pixels = row.as<float>(0);
    std::mt19937 random(static_cast<unsigned>(index));
    std::normal_distribution<float> normal;
    for (int i = 0; i < 16; ++i) pixels[i] = normal(random);
    if (index == bad_) {
      pixels[0] = std::numeric_limits<float>::quiet_NaN();
    }
    if (index == loud_) {
      for (int i = 0; i < 16; ++i) pixels[i] *= 1000;
    }
    *row.as<int64_t>(1) = index % 3;
    return true;
  }

 private:
  int64_t bad_, loud_;
};

/// A device with limited slots whose results arrive only when they are waited for.
struct LateResults final : AsyncResults {
  LateResults(int64_t& pushes_, int64_t& waits_, int64_t most_numbers_)
      : pushes(pushes_), waits(waits_), most_numbers(most_numbers_) {}
  void push(const at::Tensor& numbers) override {
    if (is_full() || numbers.size(0) > most_numbers) {
      throw InternalError("late results: no room for these numbers");
    }
    pushes += 1;
    under_way.push_back(numbers.clone());
  }
  bool is_there() const override { return under_way.empty(); }
  bool is_full() const override { return under_way.size() == 10; }
  int64_t max_in_flight() const override { return 10; }
  std::vector<double> pop() override {
    waits += 1;
    const at::Tensor oldest = under_way.front();
    under_way.pop_front();
    const auto* data = oldest.const_data_ptr<double>();
    return {data, data + oldest.numel()};
  }
  std::deque<at::Tensor> under_way;
  int64_t &pushes, &waits;
  int64_t most_numbers;
};

/// Records the reports of the trainer, one line each.
struct RecordingObserver : Observer {
  explicit RecordingObserver(const int64_t& pushes_) : pushes(pushes_) {}
  void stepped(const StepEvent& e) override {
    lines.push_back(
        fmt::format("step {} of {} epoch {} lr {} varied {} loss {} norm {} accuracy {} skipped {}",
                    e.step, e.steps, e.epoch, e.lr, e.scheduled.empty() ? 0 : e.scheduled.front(),
                    e.loss, e.gradient_norm, e.accuracy.value_or(-1), e.skipped_updates));
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
  std::vector<int64_t> started_before;  // Number of started steps when each step was reported.
};

/// Requests a stop after a step.
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
  RecordingObserver observer{pushes};
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

  // Continues from the newest checkpoint, if there is one.
  std::unique_ptr<Trained> run_schedule(const std::string& yaml, bool late, TrainConfig config,
                                        StepConfig step_config = {}, int64_t bad = -1,
                                        int64_t stop_at = -1, const std::string& smoothing = {}) {
    // So that reports have a fixed order.
    config.checkpoint_in_background = false;
    auto run = std::make_unique<Trained>();
    const model::ModelRegistry models = model::built_in_models();
    const schedule::ScheduleRegistry schedules = schedule::built_in_schedules();
    const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
    const auto model = models.build(config::Component(models, "mlp"), task, 1);
    schedule::ScheduledValueConfig chosen(schedules), vary(schedules);
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
    std::optional<schedule::ScheduledValue> scheduled_value;
    if (vary.is_scheduled())
      scheduled_value.emplace("label_smoothing", vary, config.label_smoothing, length);
    std::vector<ParameterSchedule> scheduled;
    if (scheduled_value) {
      scheduled.push_back({ScheduledParameter::kLabelSmoothing,
                           [&](double p) { return scheduled_value->at(p); },
                           &scheduled_value->schedule()});
    }
    if (schedule::has_momentum(*schedule)) {
      scheduled.push_back({ScheduledParameter::kMomentum,
                           [&](double p) { return schedule->momentum(p).value_or(0.9); }});
    }
    StopRequest stop;
    StopsAt stops(stop, stop_at);
    if (late) {
      step_config.make_results = [&](c10::Device,
                                     int64_t most_numbers) -> std::unique_ptr<AsyncResults> {
        return std::make_unique<LateResults>(run->pushes, run->waits, most_numbers);
      };
    }
    const data::LoaderConfig loader{.batch = kBatch, .threads = 0};
    Trainer trainer({.model = *model,
                     .optimizer = *optimizer,
                     .schedule = *schedule,
                     .scheduled = scheduled,
                     .train_samples = images,
                     .evaluation_samples = bad < 0 ? &images : nullptr,
                     .checkpoints = checkpoints,
                     .observers = {&run->observer, &stops},
                     .stop = stop,
                     .teacher = teacher_},
                    config, step_config, loader, {.loader = loader, .metrics = metrics_});
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

  // With `deciding` as what tells the best evaluation.
  std::shared_ptr<const MetricSet> metrics_of(const std::string& deciding) const {
    const MetricRegistry registry = built_in_metrics();
    MetricChoice choice(registry);
    choice.deciding = config::component_of(registry, deciding);
    return std::make_shared<MetricSet>(registry, choice, MetricTask{.classes = 3});
  }

  fs::path folder_;
  std::shared_ptr<const MetricSet> metrics_;  // If null, the default metrics.
  std::string optimizer_ = "sgd", wrappers_ = "[]";
  std::optional<CheckpointInfo> resume_from_;
  std::string teacher_;
  int64_t loud_ = -1;
  int64_t keep_last_ = 10;
  std::vector<std::string> model_names_;  // Parameter names of the last run.
};

}  // namespace gallop::train
