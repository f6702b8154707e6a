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
#include "gallop/train/out_of_memory.h"
#include "gallop/train/pace.h"
#include "gallop/train/progress.h"
#include "gallop/train/statistics.h"

namespace gallop::train {

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

constexpr const char* kTeacher = "distill.teacher";

// A run goes on with the teacher that it had.
void check_teacher(const std::map<std::string, std::string>& saved, const std::string& teacher) {
  const auto found = saved.find(kTeacher);
  if (teacher.empty() || found == saved.end() || found->second == teacher) return;
  throw UsageError(fmt::format(
      "train.distill.teacher has other weights than the teacher that this run began with "
      "(checksum {} in place of {}); give that one, or begin a new run",
      teacher, found->second));
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
  bool wants_rewind = false;
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

  // A run that was longer before it was resumed is past its end.
  bool is_last() const { return progress.step >= length.steps; }
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
  double share_of(int64_t samples) {
    samples -= holds.samples_before(progress.step);
    return std::min(1.0, static_cast<double>(samples) / static_cast<double>(length.samples));
  }
  double share_done() { return share_of(progress.samples); }
  double epoch() const {
    return static_cast<double>(progress.step) / static_cast<double>(loader.batches_per_epoch());
  }

  bool train_one() {
    const data::LoaderState position = loader.state();
    const auto batch = loader.next(&parts.stop);
    if (!batch) return false;
    const bool record = (progress.step + 1) % record_every == 0 || progress.step == 0;
    const double lr =
        parts.lr_factor * parts.optimizer.base_lr() * parts.schedule.factor(share_done());
    const bool has_samples = batch->size() > 0;
    std::vector<double> varied;
    for (const VariedValue& one : parts.varied) varied.push_back(one.at(share_done()));
    if (has_samples) start_step(*batch, lr, record, varied, position);
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

  // One that does not fit has changed nothing: the run is saved as it was before.
  void start_step(const data::Batch& batch, double lr, bool record,
                  const std::vector<double>& varied, const data::LoaderState& position) {
    try {
      step.start(batch.input, batch.target, progress.step, lr, record, varied);
    } catch (const StepDoesNotFit&) {
      report_all();
      loader.seek(position);
      if (saved_step != progress.step) save(false);
      throw;
    }
    if (step.splits() == progress.splits) return;
    progress.splits = step.splits();
    const int64_t pieces = config.accumulate * progress.splits;
    tell(&Observer::noted,
         fmt::format("out of memory at step {}: from here on batches are computed in {} parts, as "
                     "with train.accumulate={}. {}",
                     progress.step + 1, pieces, pieces, step.why_split()));
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
    progress.skipped_updates += result.finite && !result.is_spike ? 0 : 1;
    if (!result.finite) holds.skipped(event.step - 1, samples);
    progress.spikes_in_row = result.is_spike ? progress.spikes_in_row + 1 : 0;
    event.loss = result.tally.loss();
    event.gradient_norm = result.gradient_norm;
    event.skipped_updates = progress.skipped_updates;
    event.is_spike = result.is_spike;
    if (event.record) event.accuracy = result.tally.accuracy();
    tell(&Observer::stepped, event);
    if (result.is_spike) note_spike(event);
  }

  void note_spike(const StepEvent& event) {
    if (config.spikes.action == "rewind") {
      wants_rewind = true;
    } else if (progress.spikes_in_row > config.spikes.limit) {
      throw DataError(fmt::format(
          "step {}: the loss of {:.4g} is spike number {} in a row, and train.spikes.limit is {}. "
          "{}",
          event.step, event.loss, progress.spikes_in_row, config.spikes.limit, what_to_do()));
    }
  }

  std::string what_to_do() const {
    const auto newest = parts.checkpoints.newest();
    return fmt::format(
        "The last checkpoint is {}. Try a lower optimizer.lr, train.clip=1, or a higher "
        "train.spikes.threshold",
        newest ? newest->folder.string() : "not written yet");
  }

  // Back to older weights, on with newer data: counters, schedules and the position in the data
  // stay.
  void rewind() {
    wants_rewind = false;
    const auto target = parts.checkpoints.of_step(progress.rewind_step);
    if (!target) {
      tell(&Observer::noted,
           fmt::format("step {}: a spike of the loss was skipped; there is no checkpoint yet to go "
                       "back to",
                       progress.step));
      return;
    }
    progress.rewinds += 1;
    if (progress.rewinds > config.spikes.limit) {
      throw DataError(
          fmt::format("step {}: the loss is a spike that takes rewind number {}, and "
                      "train.spikes.limit is {}. {}",
                      progress.step, progress.rewinds, config.spikes.limit, what_to_do()));
    }
    clock.pause();
    const AveragedWeights averaged(parts.optimizer);
    TrainingState old = state();
    parts.checkpoints.load(*target, old);
    tell(&Observer::noted,
         fmt::format("step {}: the loss is a spike; weights are again those of step {} (rewind {} "
                     "of at most {})",
                     progress.step, target->step, progress.rewinds, config.spikes.limit));
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
    if (result.finite || step.skips_nonfinite()) return;
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
    // Of those that a run which nobody disturbs has, too.
    if (config.spikes.action == "rewind" && checkpoint_due.at(progress.step)) {
      progress.rewind_step = progress.step;
      parts.checkpoints.spare(progress.step);
    }
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
    if (!parts.teacher.empty()) state.trainer[kTeacher] = parts.teacher;
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
    outcome.rewinds = progress.rewinds;
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
      if (config.snapshots && cycle_is_over()) keep_snapshot();
      if (is_last() || is_out_of_patience()) return finish(true);
      if (checkpoint_due.at(progress.step)) {
        report_all();
        save(false);
      }
      clock.go();
      if (parts.stop.requested() || !train_one()) return finish(false);
      if (config.spikes.action != "rewind") continue;
      report_all();  // The next step is to have the older weights.
      if (wants_rewind) rewind();
    }
  }

  // By the step alone, so that a run that was stopped here finds it again.
  bool cycle_is_over() {
    if (progress.step == 0) return false;
    return is_last() || parts.schedule
                            .cycle_ends(share_of(length.samples_after(progress.step - 1)),
                                        share_of(length.samples_after(progress.step)))
                            .value_or(false);
  }

  void keep_snapshot() {
    report_all();
    if (saved_step != progress.step) save(false);
    if (const auto newest = parts.checkpoints.newest()) parts.checkpoints.keep(*newest);
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

void check_snapshots(const schedule::Schedule& schedule, const TrainConfig& config) {
  if (!config.snapshots || schedule.cycle_ends(0, 0)) return;
  throw UsageError(
      "train.snapshots keeps the end of each cycle, but the schedule has none; take "
      "schedule.name=cosine-restarts, or cyclic");
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
  check_snapshots(parts.schedule, config);
}

Trainer::~Trainer() = default;

void Trainer::resume(const CheckpointInfo& checkpoint) {
  const AveragedWeights averaged(impl_->parts.optimizer);
  TrainingState state = impl_->state();
  check_teacher(impl_->parts.checkpoints.read_trainer(checkpoint), impl_->parts.teacher);
  impl_->parts.checkpoints.load(checkpoint, state);
  data::LoaderState loader_state;
  impl_->progress = Progress::from_map(state.trainer, loader_state);
  impl_->holds.read(state.trainer);
  impl_->loader.seek(loader_state);
  impl_->step.set_splits(impl_->progress.splits);
  for (const auto& [name, schedule] : impl_->schedules()) {
    read_schedule(state.trainer, name, *schedule);
  }
  impl_->evaluation_due.done(impl_->progress.evaluated_step);
  impl_->checkpoint_due.done(impl_->progress.step);
  impl_->saved_step = impl_->progress.step;
  impl_->parts.checkpoints.spare(impl_->progress.rewind_step);
  impl_->earlier_seconds = impl_->progress.training_seconds;
}

Outcome Trainer::run() { return impl_->run(); }

}  // namespace gallop::train
