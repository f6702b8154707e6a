#include "gallop/train/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/progress.h"
#include "gallop/base/text.h"
#include "gallop/base/trace.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/train/trainer_impl.h"

namespace gallop::train {

namespace {

StepConfig step_config_of(StepConfig config, const std::string& on_nonfinite,
                          const std::vector<ParameterSchedule>& scheduled) {
  config.skip_nonfinite = on_nonfinite == "skip";
  config.scheduled.clear();
  for (const ParameterSchedule& one : scheduled) config.scheduled.push_back(one.value);
  return config;
}

data::LoaderConfig with_changes(data::LoaderConfig loader, const BatchHistory& history) {
  loader.changes = history.changes();
  return loader;
}

}  // namespace

BatchHistory planned_history(const TrainConfig& config, const data::LoaderConfig& loader,
                             int64_t samples) {
  return new_history(config, loader.batch, samples, planned_batches(loader));
}

Trainer::Impl::Impl(const TrainerParts& parts_, const TrainConfig& config_,
                    const StepConfig& step_config, const data::LoaderConfig& loader_config_,
                    const EvaluateConfig& evaluate_config_)
    : parts(parts_),
      config(config_),
      evaluate_config(evaluate_config_),
      loader_config(with_changes(
          loader_config_, planned_history(config, loader_config_, parts.train_samples.size()))),
      process_group(step_config.strategy),
      loader(parts.train_samples, loader_config, {.seed = config.seed}, evaluate_config.device),
      step(parts.model, parts.optimizer,
           step_config_of(step_config, config.on_nonfinite, parts.scheduled)),
      length(
          Length::of(config, planned_history(config, loader_config, parts.train_samples.size()))),
      skipped_samples(step.max_in_flight()),
      pause_step(length.step_of(parts.until)),
      evaluation_trigger(Interval::parse(config.evaluate_every), length),
      checkpoint_trigger(Interval::parse(config.checkpoint_every), length),
      comparison_trigger(Interval::parse(config.compare_every), length),
      record_every(std::max<int64_t>(1, length.steps / 500)),
      writer(parts.checkpoints, {.in_background = config.checkpoint_in_background,
                                 .rank = process_group.rank(),
                                 .seconds = process_group.limits().other}) {
  for (const auto& [name, schedule] : schedules()) {
    check_schedule(*schedule, config, parts.evaluation_samples != nullptr);
    check_followed(*schedule, evaluate_config.metrics.get());
  }
  process_group.broadcast_parameters(live_model());
  begin_with_equal_replicas();
}

// Earlier steps of the strategy, such as those of a search for a learning rate, do not count.
void Trainer::Impl::begin_with_equal_replicas() {
  parallel::ModelAverager* const averager = process_group.averager();
  if (averager == nullptr) return;
  averager->restart();
  const auto [sync_every, warmup_steps] = averager->schedule();
  // In warm-up steps, replicas remain equal.
  if (warmup_steps >= length.steps || warmup_steps + sync_every <= length.steps) return;
  throw UsageError(fmt::format(
      "parallel.sync_every={}{}: a run of {} steps ends before processes have exchanged "
      "anything; set it to at most {}",
      sync_every, warmup_steps > 0 ? fmt::format(" with warmup_steps={}", warmup_steps) : "",
      length.steps, length.steps - warmup_steps));
}

// What is done now satisfies the requests of all steps so far, of which some have not taken effect.
void Trainer::Impl::satisfy(StepRequest request) {
  const auto i = static_cast<size_t>(request);
  agreed[i] = false;
  for (auto& [step, made] : requests) made[i] = false;
}

Outcome Trainer::Impl::run() {
  const ProgressScope progress_scope([this] { process_group.note_progress(); });
  parts.model.set_training(true);
  parts.model.statistics_report();  // That of a resumed run begins here.
  if (has_mean_of_replicas) process_group.averager()->use_mean(false);
  has_mean_of_replicas = false;
  if (!note_of_replicas.empty()) tell(&Observer::noted, note_of_replicas);
  note_of_replicas.clear();
  if (!process_group.is_alone()) {
    for (size_t i = 0; i < kStepRequests; ++i) agreed[i] = process_group.any(local_requests()[i]);
  }
  for (;;) {
    begin_step();
    apply_requests();
    note_saved();
    if (comparison_is_due() && !compare_states()) continue;
    if (evaluation_is_due()) {
      report_all();
      clock.pause();
      if (!evaluate_now()) return finish(false);
    }
    if (config.snapshots && cycle_is_over()) keep(Kept::kSnapshot);
    if (keeps_prefix()) keep(Kept::kPrefix);
    if (is_last() || is_out_of_patience()) return finish(true);
    if (progress.step >= pause_step) {
      outcome.paused = true;
      return finish(false);
    }
    if (is_due(checkpoint_trigger, StepRequest::kSave)) {
      report_all();
      save(false);
    }
    clock.go();
    if (requested(StepRequest::kStop) || !train_one()) return finish(false);
    if (config.spikes.action != "rewind") continue;
    report_all();  // The next step must use the restored weights.
    if (wants_rewind) rewind();
  }
}

Outcome Trainer::Impl::finish(bool finished) {
  report_all();
  // For a run that ends early, or without an evaluation.
  finished = finished && recompute_statistics();
  if (finished) outcome.ended_early = why_early();
  if (finished && outcome.last && progress.best_step < 0) note_without_best();
  if (finished && config.early_stopping.restore_best) restore_best();
  if (saved_step != progress.step) save(false);
  finish_saving();
  share_broken();
  if (process_group.averager() != nullptr) {
    process_group.averager()->use_mean(true);
    has_mean_of_replicas = true;
  }
  outcome.finished = finished;
  outcome.step = progress.step;
  outcome.steps = length.steps;
  outcome.samples = progress.samples;
  outcome.seconds = monotonic_seconds() - started;
  outcome.training_seconds = training_seconds();
  outcome.wait_share = wait_share();
  outcome.skipped_updates = progress.skipped_updates;
  outcome.skipped_samples = broken.count();
  outcome.rewinds = progress.rewinds;
  tell(&Observer::finished, outcome);
  return outcome;
}

bool Trainer::Impl::evaluation_is_due() const {
  if (parts.evaluation_samples == nullptr || progress.evaluated_step == progress.step) {
    return false;
  }
  return is_last() || is_due(evaluation_trigger, StepRequest::kEvaluate);
}

StepRequests Trainer::Impl::local_requests() const {
  const auto by_time = [](const Trigger& trigger) { return trigger.is_by_time() && trigger.at(0); };
  return {parts.stop.requested(), by_time(evaluation_trigger), by_time(checkpoint_trigger)};
}

bool Trainer::Impl::requested(StepRequest request) const {
  const auto i = static_cast<size_t>(request);
  return process_group.is_alone() ? local_requests()[i] : agreed[i];
}

// Steps are the same in all processes; times are not, and need a request.
bool Trainer::Impl::is_due(const Trigger& trigger, StepRequest request) const {
  return trigger.is_by_time() ? requested(request) : trigger.at(progress.step);
}

// Applies requests at the same step in all processes.
void Trainer::Impl::apply_requests() {
  for (; !requests.empty() && requests.front().first + step.max_in_flight() <= progress.step;
       requests.pop_front()) {
    for (size_t i = 0; i < kStepRequests; ++i) agreed[i] = agreed[i] || requests.front().second[i];
  }
}

// Depends only on the step, so that a resumed run gets the same result.
bool Trainer::Impl::cycle_is_over() {
  if (progress.step == 0) return false;
  return is_last() || parts.schedule
                          .cycle_ends(share_of(length.samples_after(progress.step - 1)),
                                      share_of(length.samples_after(progress.step)))
                          .value_or(false);
}

double Trainer::Impl::wait_share() const {
  const double seconds = monotonic_seconds() - started;
  return seconds > 0 ? loader.wait_seconds() / seconds : 0;
}

void check_schedule(const schedule::Schedule& schedule, const TrainConfig& config, bool evaluates) {
  if (schedule.state().empty() || (evaluates && config.evaluate_every != "never")) return;
  throw UsageError(fmt::format(
      "the schedule follows evaluations, but there are none: {}",
      evaluates ? "train.evaluate_every is never; set it, for example to '1 epoch', or use "
                  "another schedule.name"
                : "the data have no split to evaluate on; set data.validation, or use another "
                  "schedule.name"));
}

void check_followed(const schedule::Schedule& schedule, const MetricSet* metrics) {
  const std::vector<std::string> known =
      metrics != nullptr
          ? metrics->single_names()
          : std::vector<std::string>(std::begin(kEvaluatedNames), std::end(kEvaluatedNames));
  for (const std::string& name : schedule.followed_metrics()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    throw UsageError(fmt::format(
        "the schedule follows the metric '{}', which evaluations do not have{} They have {}; "
        "train.metrics adds others",
        printable(name), nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest),
        join_names(known, "and")));
  }
}

void check_snapshots(const schedule::Schedule& schedule, const TrainConfig& config) {
  if (!config.snapshots || schedule.cycle_ends(0, 0)) return;
  throw UsageError(
      "train.snapshots keeps the end of each cycle, but the schedule has none; use "
      "schedule.name=cosine-restarts, or cyclic");
}

Trainer::Trainer(const TrainerParts& parts, const TrainConfig& config,
                 const StepConfig& step_config, const data::LoaderConfig& loader_config,
                 const EvaluateConfig& evaluate_config)
    : impl_(std::make_unique<Impl>(parts, config, step_config, loader_config, evaluate_config)) {
  check_evaluations(config, parts.evaluation_samples != nullptr);
  check_snapshots(parts.schedule, config);
}

Trainer::~Trainer() = default;

void Trainer::resume(const std::optional<CheckpointInfo>& checkpoint) { impl_->resume(checkpoint); }

bool Trainer::has_ended() const {
  const bool is_evaluated = impl_->parts.evaluation_samples == nullptr ||
                            impl_->progress.evaluated_step == impl_->progress.step;
  return (impl_->is_last() && is_evaluated) || impl_->is_out_of_patience();
}

void Trainer::observe(std::vector<Observer*> observers) {
  impl_->parts.observers = std::move(observers);
}

std::map<int64_t, compile::GraphListing> Trainer::compiled_graphs() const {
  return impl_->step.compiled_graphs();
}

std::optional<std::string> Trainer::why_eager() const {
  const compile::CompileReport* report = impl_->step.compile_report();
  if (report == nullptr) return "train.compile is false";
  if (report->replayed > 0 || report->reasons.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(report->reasons, "; "));
}

Outcome Trainer::run() { return impl_->run(); }

}  // namespace gallop::train
