#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/base/trace.h"
#include "gallop/data/broken_samples.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/step/step.h"
#include "gallop/train/trainer_impl.h"

namespace gallop::train {

namespace {

std::string non_finite_text(const std::string& tensor) {
  if (tensor == "loss") return "the loss";
  return tensor.empty() ? "a gradient" : "the gradient of " + tensor;
}

}  // namespace

// A step is traced from one call to the next, with whatever is done between them.
void Trainer::Impl::begin_step() {
  if (step_began_ns != 0) {
    record_span(SpanKind::kStep, "step", step_began_ns, monotonic_nanoseconds(), progress.step);
  }
  tell(&Observer::step_begins, progress.step);
  step_began_ns = is_tracing() ? monotonic_nanoseconds() : 0;
}

bool Trainer::Impl::train_one() {
  const data::LoaderState position = loader.state();
  // Processes that share steps stop only at the same step.
  auto batch = loader.next(process_group.is_alone() ? &parts.stop : nullptr);
  if (!batch) return false;
  for (const int64_t index :
       data::broken_samples(*batch, parts.train_samples, loader_config, loader.state().seed)) {
    note_broken(index);
  }
  resize(config.progressive_resizing, share_done(), *batch);
  truncate(config.seq_length_warmup, share_done(), *batch);
  const bool record = (progress.step + 1) % record_every == 0 || progress.step == 0;
  const double lr =
      parts.lr_factor * parts.optimizer.base_lr() * parts.schedule.factor(share_done());
  const bool has_samples = batch->size() > 0 || !process_group.is_alone();
  std::vector<double> scheduled;
  for (const ParameterSchedule& one : parts.scheduled) scheduled.push_back(one.at(share_done()));
  if (has_samples) start_step(*batch, lr, record, scheduled, position);
  tell_of_compiling();
  if (steps_here == 1) tell_of_unused();
  progress.step += 1;
  progress.samples += batch->whole_size;
  if (process_group.is_alone()) progress.skipped_samples += batch->skipped;
  throughput.add(process_group.is_alone() ? batch->size() : batch->whole_size, clock.seconds());
  started_steps.push_back({.event = event_of(lr, scheduled, record),
                           .samples = batch->whole_size,
                           .has_samples = has_samples});
  report_what_is_there();
  return true;
}

// A step that does not fit has changed nothing; the state before it is saved.
void Trainer::Impl::start_step(const data::Batch& batch, double lr, bool record,
                               const std::vector<double>& scheduled,
                               const data::LoaderState& position) {
  // Steps that are traced and compiled have no short timeout.
  const bool starts = steps_to_compile > 0;
  steps_to_compile -= starts ? 1 : 0;
  steps_here += 1;
  process_group.begin(starts ? parallel::Section::kStart : parallel::Section::kStep,
                      progress.step + 1);
  const NamedTensors fields = batch.by_role();
  tell(&Observer::step_starts, StepArguments{.step = progress.step,
                                             .batch = fields,
                                             .whole_rows = batch.whole_size,
                                             .lr = lr,
                                             .scheduled = scheduled});
  try {
    step.start(fields, progress.step, lr, record, scheduled,
               {.rows = batch.whole_size, .own_rows = batch.size(), .requests = local_requests()});
  } catch (const StepDoesNotFit&) {
    report_all();
    loader.seek(position);
    if (saved_step != progress.step) save(false);
    finish_saving();
    throw;
  }
  if (step.splits() == progress.splits) return;
  progress.splits = step.splits();
  steps_to_compile = 2;
  const int64_t pieces = config.gradient_accumulation * progress.splits;
  tell(&Observer::noted,
       fmt::format("out of memory at step {}: from here on batches are computed in {} parts, as "
                   "with train.gradient_accumulation={}. {}",
                   progress.step + 1, pieces, pieces, step.why_split()));
}

// Does not wait, except for the oldest step if the maximum number is in flight.
void Trainer::Impl::report_what_is_there() {
  const TraceSpan span(SpanKind::kPhase, "report");
  while (!started_steps.empty() &&
         (!started_steps.front().has_samples || step.can_take() || step.is_full())) {
    report_oldest();
  }
}

// Must precede anything that depends on the results of steps.
void Trainer::Impl::report_all() {
  while (!started_steps.empty()) report_oldest();
}

void Trainer::Impl::report_oldest() {
  auto [event, samples, has_samples] = std::move(started_steps.front());
  started_steps.pop_front();
  const StepResult result = has_samples ? step.take() : StepResult();
  check(result, event.step);
  if (!process_group.is_alone()) {
    requests.emplace_back(event.step, result.requests);
    progress.skipped_samples += samples - std::llround(result.share * static_cast<double>(samples));
  }
  progress.skipped_updates += result.finite && !result.is_spike ? 0 : 1;
  if (!result.finite) skipped_samples.skipped(event.step - 1, samples);
  progress.spikes_in_row = result.is_spike ? progress.spikes_in_row + 1 : 0;
  event.loss = result.tally.loss();
  event.gradient_norm = result.gradient_norm;
  event.skipped_updates = progress.skipped_updates;
  event.is_spike = result.is_spike;
  if (event.record && result.has_class_labels) event.accuracy = result.tally.accuracy();
  tell(&Observer::stepped, event);
  if (result.is_spike) note_spike(event);
}

void Trainer::Impl::note_spike(const StepEvent& event) {
  if (config.spikes.action == "rewind") {
    wants_rewind = true;
  } else if (progress.spikes_in_row > config.spikes.limit) {
    throw DataError(fmt::format(
        "step {}: the loss of {:.4g} is spike number {} in a row, and train.spikes.limit is {}. "
        "{}",
        event.step, event.loss, progress.spikes_in_row, config.spikes.limit, what_to_do()));
  }
}

// Reports the first broken samples by name.
void Trainer::Impl::note_broken(int64_t index) {
  constexpr int64_t kMost = 10;
  if (!broken.add(index) || broken.count() > kMost + 1) return;
  tell(&Observer::noted,
       broken.count() > kMost
           ? "more broken training samples are skipped, and only counted from here on"
           : fmt::format("broken training sample skipped: {}",
                         printable(data::describe_broken(parts.train_samples, index))));
}

// Each process finds those of its own slices. All call this together.
void Trainer::Impl::share_broken() {
  if (process_group.is_alone()) return;
  process_group.begin(parallel::Section::kCheckpoint, progress.step);
  for (const std::string& one : process_group.gather(broken.text())) {
    for (const int64_t index : BrokenSamples::parse(one)) note_broken(index);
  }
}

// With fp16, non-finite steps are part of finding the loss scale.
void Trainer::Impl::check(const StepResult& result, int64_t number) const {
  if (result.finite || step.skips_nonfinite()) return;
  const auto newest = parts.checkpoints.newest();
  throw DataError(fmt::format(
      "step {}: {} is not finite. The last good checkpoint is {}. Try a lower optimizer.lr, "
      "train.clip_grad_norm=1, or train.on_nonfinite=skip{}",
      number, non_finite_text(result.non_finite_tensor),
      newest ? newest->folder.string() : "not written yet",
      result.non_finite_tensor == "loss" ? step.infinite_because() : ""));
}

std::string Trainer::Impl::what_to_do() const {
  const auto newest = parts.checkpoints.newest();
  return fmt::format(
      "The last checkpoint is {}. Try a lower optimizer.lr, train.clip_grad_norm=1, or a higher "
      "train.spikes.threshold",
      newest ? newest->folder.string() : "not written yet");
}

// Reports why steps are not compiled, each reason once.
void Trainer::Impl::tell_of_compiling() {
  const compile::CompileReport* report = step.compile_report();
  if (report == nullptr) return;
  for (; reported_reasons < report->reasons.size(); ++reported_reasons) {
    tell(&Observer::noted, "a step is not compiled: " + report->reasons[reported_reasons]);
  }
}

void Trainer::Impl::tell_of_unused() {
  const auto names = process_group.unused();
  if (names.empty()) return;
  constexpr size_t kMost = 8;
  std::vector<std::string> some(names.begin(), names.begin() + std::min(names.size(), kMost));
  if (names.size() > kMost) some.push_back(fmt::format("{} more", names.size() - kMost));
  tell(&Observer::noted,
       fmt::format("{} of {} parameters got no gradient, which counts as 0: {}", names.size(),
                   parts.model.parameters().size(), join_names(some, "and")));
}

// The values that are known when a step has been started.
StepEvent Trainer::Impl::event_of(double lr, const std::vector<double>& scheduled,
                                  bool record) const {
  return {.step = progress.step,
          .steps = length.steps,
          .epoch = epoch(),
          .lr = lr,
          .scheduled = scheduled,
          .samples_per_second = throughput.samples_per_second(),
          .wait_share = wait_share(),
          .seconds_left =
              throughput.seconds_per_step() * static_cast<double>(length.steps - progress.step),
          .skipped_samples = broken.count(),
          .record = record};
}

}  // namespace gallop::train
