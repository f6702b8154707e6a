#include "gallop/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/data/device_loader.h"
#include "gallop/train/averaged_weights.h"
#include "gallop/train/due.h"
#include "gallop/train/holds.h"
#include "gallop/train/pace.h"
#include "gallop/train/progress.h"
#include "gallop/train/statistics.h"

namespace gallop::train {

Length Length::of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch) {
  const int64_t batches_per_epoch = (samples_per_epoch + batch - 1) / batch;
  Length length{.batches_per_epoch = batches_per_epoch,
                .batch = batch,
                .samples_per_epoch = samples_per_epoch};
  length.steps = config.steps.value_or(static_cast<int64_t>(
      std::ceil(config.epochs * static_cast<double>(batches_per_epoch) - 1e-9)));
  length.samples = length.steps / batches_per_epoch * samples_per_epoch +
                   length.steps % batches_per_epoch * batch;
  return length;
}

schedule::RunLength Length::for_schedules() const {
  return {.samples = static_cast<double>(samples),
          .samples_per_epoch = static_cast<double>(samples_per_epoch),
          .batch = static_cast<double>(batch),
          .batches_per_epoch = static_cast<double>(batches_per_epoch)};
}

namespace {

std::string name_of_bad(const std::string& tensor) {
  if (tensor == "loss") return "the loss";
  return tensor.empty() ? "a gradient" : "the gradient of " + tensor;
}

StepConfig step_config_of(StepConfig config, const std::string& on_nonfinite,
                          const std::vector<VariedValue>& varied) {
  config.skip_nonfinite = on_nonfinite == "skip";
  config.varied.clear();
  for (const VariedValue& one : varied) config.varied.push_back(one.value);
  return config;
}

}  // namespace

struct Trainer::Impl {
  TrainerParts parts;
  TrainConfig config;
  EvaluateConfig evaluate_config;
  data::LoaderConfig loader_config;
  data::DeviceLoader loader;
  TrainStep step;
  Length length;
  Progress progress;
  Holds holds;
  Due evaluation_due, checkpoint_due;
  Speed speed;
  int64_t record_every;
  double started = monotonic_seconds();
  Stopwatch clock;  // Of training, without evaluation and saving.
  double earlier_seconds = 0;
  int64_t saved_step = -1;
  int64_t recomputed_step = -1;  // Of weights whose statistics were taken anew.
  size_t told_reasons = 0;
  Outcome outcome;

  // A step whose numbers may be on their way.
  struct Started {
    StepEvent event;
    int64_t samples = 0;
    bool has_samples = true;  // Else nothing was computed.
  };
  std::deque<Started> started_steps;

  Impl(const TrainerParts& parts_, const TrainConfig& config_, const StepConfig& step_config,
       const data::LoaderConfig& loader_config_, const EvaluateConfig& evaluate_config_)
      : parts(parts_),
        config(config_),
        evaluate_config(evaluate_config_),
        loader_config(loader_config_),
        loader(parts.train_samples, loader_config, {.seed = config.seed}, evaluate_config.device),
        step(parts.model, parts.optimizer,
             step_config_of(step_config, config.on_nonfinite, parts.varied)),
        length(Length::of(config, loader_config.batch, parts.train_samples.size())),
        holds(step.most_behind()),
        evaluation_due(Interval::parse(config.evaluate_every), loader.batches_per_epoch()),
        checkpoint_due(Interval::parse(config.checkpoint_every), loader.batches_per_epoch()),
        record_every(std::max<int64_t>(1, length.steps / 500)) {
    for (const auto& [name, schedule] : schedules()) {
      check_schedule(*schedule, config, parts.evaluation_samples != nullptr);
    }
  }

  template <typename Function, typename... Args>
  void tell(Function function, const Args&... args) {
    for (Observer* observer : parts.observers) (observer->*function)(args...);
  }

  bool is_last() const { return progress.step == length.steps; }
  // Each with what its state is called in checkpoints.
  std::vector<std::pair<std::string, schedule::Schedule*>> schedules() const {
    std::vector<std::pair<std::string, schedule::Schedule*>> all = {{"schedule", &parts.schedule}};
    for (const VariedValue& one : parts.varied) {
      if (one.schedule == nullptr) continue;
      all.emplace_back(std::string("vary.") + name_of(one.value), one.schedule);
    }
    return all;
  }

  // What schedules call progress. They wait where an update is skipped.
  double share_done() {
    const int64_t samples = progress.samples - holds.samples_before(progress.step);
    return std::min(1.0, static_cast<double>(samples) / static_cast<double>(length.samples));
  }
  double epoch() const {
    return static_cast<double>(progress.step) / static_cast<double>(loader.batches_per_epoch());
  }

  bool train_one() {
    const auto batch = loader.next(&parts.stop);
    if (!batch) return false;
    const bool record = (progress.step + 1) % record_every == 0 || progress.step == 0;
    const double lr = parts.optimizer.base_lr() * parts.schedule.factor(share_done());
    const bool has_samples = batch->size() > 0;
    std::vector<double> varied;
    for (const VariedValue& one : parts.varied) varied.push_back(one.at(share_done()));
    if (has_samples) step.start(batch->input, batch->target, progress.step, lr, record, varied);
    tell_of_compiling();
    progress.step += 1;
    progress.samples += batch->size() + batch->skipped;
    progress.skipped_samples += batch->skipped;
    speed.add(batch->size(), clock.seconds());
    started_steps.push_back({.event = event_of(lr, varied, record),
                             .samples = batch->size() + batch->skipped,
                             .has_samples = has_samples});
    report_what_is_there();
    return true;
  }

  // Does not wait, but for the oldest where the host is far ahead.
  void report_what_is_there() {
    while (!started_steps.empty() &&
           (!started_steps.front().has_samples || step.can_take() || step.must_take())) {
      report_oldest();
    }
  }

  // Before anything that has to know how the steps went.
  void report_all() {
    while (!started_steps.empty()) report_oldest();
  }

  void report_oldest() {
    auto [event, samples, has_samples] = std::move(started_steps.front());
    started_steps.pop_front();
    const StepResult result = has_samples ? step.take() : StepResult();
    check(result, event.step);
    if (!result.finite) {
      progress.skipped_updates += 1;
      holds.skipped(event.step - 1, samples);
    }
    event.loss = result.tally.loss();
    event.gradient_norm = result.gradient_norm;
    event.skipped_updates = progress.skipped_updates;
    if (event.record) event.accuracy = result.tally.accuracy();
    tell(&Observer::stepped, event);
  }

  // Why steps are not compiled, each reason once.
  void tell_of_compiling() {
    const compile::CompileReport* report = step.compile_report();
    if (report == nullptr) return;
    for (; told_reasons < report->reasons.size(); ++told_reasons) {
      tell(&Observer::noted, "a step is not compiled: " + report->reasons[told_reasons]);
    }
  }

  // With fp16 a step that is not finite is part of finding the loss scale.
  void check(const StepResult& result, int64_t number) const {
    if (result.finite || config.on_nonfinite == "skip" || !step.state().empty()) return;
    const auto newest = parts.checkpoints.newest();
    throw DataError(fmt::format(
        "step {}: {} is not finite. The last good checkpoint is {}. Try a lower optimizer.lr, "
        "train.clip=1, or train.on_nonfinite=skip",
        number, name_of_bad(result.bad_tensor),
        newest ? newest->folder.string() : "not written yet"));
  }

  // What is known when a step has been started.
  StepEvent event_of(double lr, const std::vector<double>& varied, bool record) const {
    return {.step = progress.step,
            .steps = length.steps,
            .epoch = epoch(),
            .lr = lr,
            .varied = varied,
            .samples_per_second = speed.samples_per_second(),
            .wait_share = wait_share(),
            .seconds_left =
                speed.seconds_per_step() * static_cast<double>(length.steps - progress.step),
            .skipped_samples = progress.skipped_samples,
            .record = record};
  }

  double wait_share() const {
    const double seconds = monotonic_seconds() - started;
    return seconds > 0 ? loader.wait_seconds() / seconds : 0;
  }

  const char* metric() const {
    if (config.metric != "auto") return config.metric.c_str();
    return parts.text ? "loss" : "accuracy";
  }

  // Higher is better.
  double score(const Tally& tally) const {
    const std::string_view name = metric();
    if (name == "loss") return -tally.loss();
    return name == "top5" ? tally.top5_accuracy() : tally.accuracy();
  }

  bool is_out_of_patience() const {
    const int64_t patience = config.early_stopping.patience;
    return patience > 0 && progress.evaluations_without_gain >= patience;
  }

  std::string why_early() const {
    if (is_last()) return {};
    return fmt::format("no better {} in {} evaluations", metric(),
                       progress.evaluations_without_gain);
  }

  // False where a stop request came first; the evaluation is then done at the resume.
  bool evaluate_now() {
    tell(&Observer::evaluating);
    if (is_last() && !recompute_statistics()) return false;
    const AveragedWeights averaged(parts.optimizer);
    const auto evaluation =
        train::evaluate(parts.model, *parts.evaluation_samples, evaluate_config, parts.stop);
    if (!evaluation) return false;
    const bool best =
        progress.note_evaluation(score(evaluation->tally), config.early_stopping.min_change);
    for (const auto& [name, schedule] : schedules()) {
      schedule->evaluated(share_done(), {.loss = evaluation->tally.loss(),
                                         .accuracy = evaluation->tally.accuracy()});
    }
    const EvaluationEvent event{
        .step = progress.step, .epoch = epoch(), .evaluation = *evaluation, .best = best};
    outcome.last = event;
    if (best) outcome.best = event;
    evaluation_due.done(progress.step);
    tell(&Observer::evaluated, event);
    if (best) save(true);
    return true;
  }

  // For an average that wants it. False where a stop request came first.
  bool recompute_statistics() {
    if (!parts.optimizer.averaging().recompute_statistics || recomputed_step == progress.step) {
      return true;
    }
    const AveragedWeights averaged(parts.optimizer);
    const StatisticsConfig how{.loader = loader_config,
                               .seed = static_cast<uint64_t>(config.seed),
                               .precision = evaluate_config.precision,
                               .device = evaluate_config.device};
    if (!train::recompute_statistics(parts.model, parts.train_samples, how, parts.stop)) {
      return false;
    }
    recomputed_step = progress.step;
    saved_step = -1;
    return true;
  }

  void save(bool best) {
    clock.pause();
    const AveragedWeights averaged(parts.optimizer);
    progress.training_seconds = training_seconds();
    const auto info = parts.checkpoints.save(state(), progress.step, best);
    checkpoint_due.done(progress.step);
    saved_step = progress.step;
    tell(&Observer::saved, progress.step, info.folder.string());
  }

  TrainingState state() {
    TrainingState state;
    state.model = parts.model.parameters();
    for (const auto& buffer : parts.model.buffers()) state.model.push_back(buffer);
    state.optimizer = parts.optimizer.state();
    for (const auto& tensor : step.state()) state.optimizer.push_back(tensor);
    state.trainer = progress.to_map(loader.state());
    holds.write(state.trainer);
    for (const auto& [name, schedule] : schedules()) {
      write_schedule(*schedule, name, state.trainer);
    }
    return state;
  }

  double training_seconds() const { return earlier_seconds + clock.seconds(); }

  Outcome finish(bool finished) {
    report_all();
    // Those of a run that ends early, or without an evaluation.
    finished = finished && recompute_statistics();
    if (finished) outcome.ended_early = why_early();
    if (finished && config.early_stopping.restore_best) restore_best();
    if (saved_step != progress.step) save(false);
    outcome.finished = finished;
    outcome.step = progress.step;
    outcome.steps = length.steps;
    outcome.samples = progress.samples;
    outcome.seconds = monotonic_seconds() - started;
    outcome.training_seconds = training_seconds();
    outcome.wait_share = wait_share();
    outcome.skipped_updates = progress.skipped_updates;
    outcome.skipped_samples = progress.skipped_samples;
    tell(&Observer::finished, outcome);
    return outcome;
  }

  void restore_best() {
    const auto best = parts.checkpoints.best();
    if (!best || best->step == progress.step) return;
    const AveragedWeights averaged(parts.optimizer);  // Those that the checkpoint has.
    parts.checkpoints.load_model(*best, state().model);
    outcome.restored_step = best->step;
    save(false);
  }

  Outcome run() {
    parts.model.set_training(true);
    for (;;) {
      if (evaluation_is_due()) {
        report_all();
        clock.pause();
        if (!evaluate_now()) return finish(false);
      }
      if (is_last() || is_out_of_patience()) return finish(true);
      if (checkpoint_due.at(progress.step)) {
        report_all();
        save(false);
      }
      clock.go();
      if (parts.stop.requested() || !train_one()) return finish(false);
    }
  }

  bool evaluation_is_due() const {
    if (parts.evaluation_samples == nullptr || progress.evaluated_step == progress.step) {
      return false;
    }
    return is_last() || evaluation_due.at(progress.step);
  }
};

void check_schedule(const schedule::Schedule& schedule, const TrainConfig& config, bool evaluates) {
  if (schedule.state().empty() || (evaluates && config.evaluate_every != "never")) return;
  throw UsageError(fmt::format(
      "the schedule follows evaluations, but there are none: {}",
      evaluates ? "train.evaluate_every is never" : "the data have no part to evaluate on"));
}

Trainer::Trainer(const TrainerParts& parts, const TrainConfig& config,
                 const StepConfig& step_config, const data::LoaderConfig& loader_config,
                 const EvaluateConfig& evaluate_config)
    : impl_(std::make_unique<Impl>(parts, config, step_config, loader_config, evaluate_config)) {
  if (config.early_stopping.patience > 0 && parts.evaluation_samples == nullptr) {
    throw UsageError(
        "train.early_stopping.patience needs evaluations, but the data have no part to evaluate "
        "on; set data.validation, or patience to 0");
  }
}

Trainer::~Trainer() = default;

void Trainer::resume(const CheckpointInfo& checkpoint) {
  const AveragedWeights averaged(impl_->parts.optimizer);
  TrainingState state = impl_->state();
  impl_->parts.checkpoints.load(checkpoint, state);
  data::LoaderState loader_state;
  impl_->progress = Progress::from_map(state.trainer, loader_state);
  impl_->holds.read(state.trainer);
  impl_->loader.seek(loader_state);
  for (const auto& [name, schedule] : impl_->schedules()) {
    read_schedule(state.trainer, name, *schedule);
  }
  impl_->evaluation_due.done(impl_->progress.evaluated_step);
  impl_->checkpoint_due.done(impl_->progress.step);
  impl_->saved_step = impl_->progress.step;
  impl_->earlier_seconds = impl_->progress.training_seconds;
}

Outcome Trainer::run() { return impl_->run(); }

}  // namespace gallop::train
