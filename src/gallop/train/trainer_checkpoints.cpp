#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/base/trace.h"
#include "gallop/train/averaged_weights.h"
#include "gallop/train/replica_state.h"
#include "gallop/train/shared_state.h"
#include "gallop/train/trainer_impl.h"

namespace gallop::train {

namespace {

constexpr const char* kTeacher = "distill.teacher";

// A resumed run must use the same teacher.
void check_teacher(const std::map<std::string, std::string>& saved, const std::string& teacher) {
  const auto found = saved.find(kTeacher);
  if (teacher.empty() || found == saved.end() || found->second == teacher) return;
  throw UsageError(fmt::format(
      "train.distill.teacher has other weights than the teacher that this run began with "
      "(checksum {} in place of {}); give that one, or begin a new run",
      teacher, found->second));
}

// A schedule that follows evaluations continues from its saved state.
void check_schedule_state(const std::map<std::string, std::string>& saved, const std::string& name,
                          const schedule::Schedule& schedule) {
  if (schedule.state().empty() || saved.contains(name + ".0")) return;
  throw UsageError(fmt::format(
      "{}.name: this schedule follows evaluations, and the checkpoint has no state of one that "
      "does; keep the schedule, or begin another run with --from",
      name));
}

// Earlier versions named the state of a schedule after the former option.
void rename_old_keys(std::map<std::string, std::string>& trainer) {
  constexpr std::string_view kOld = "vary.";
  std::vector<std::string> old;
  for (const auto& [key, value] : trainer) {
    if (key.starts_with(kOld)) old.push_back(key);
  }
  for (const std::string& key : old) {
    auto entry = trainer.extract(key);
    entry.key() = "schedules." + key.substr(kOld.size());
    trainer.insert(std::move(entry));
  }
}

}  // namespace

// If parameters are in parts, this process may have no more than its parts.
NamedTensors Trainer::Impl::live_model() const {
  NamedTensors all = parts.model.parameters();
  for (const auto& buffer : parts.model.buffers()) all.push_back(buffer);
  return all;
}

std::vector<LogicalTensor> Trainer::Impl::logical_model() const {
  std::vector<LogicalTensor> all = process_group.parameters_in_parts();
  std::set<std::string> names;
  for (const LogicalTensor& one : all) names.insert(one.name);
  for (const LogicalTensor& one : replicas_of(live_model())) {
    if (!names.contains(one.name)) all.push_back(one);
  }
  return all;
}

// The tensors that a checkpoint has; on the meta device what this process has only a part of.
TrainingState Trainer::Impl::state() {
  TrainingState state;
  for (const LogicalTensor& tensor : logical_model()) {
    state.model.push_back({tensor.name, tensor.is_replicated() ? tensor.local : tensor.whole});
  }
  state.optimizer = wholes_of(parts.optimizer.logical_state());
  for (const auto& tensor : step.state()) state.optimizer.push_back(tensor);
  state.trainer = progress.to_map(loader.state());
  length.history.write(state.trainer);
  skipped_samples.write(state.trainer);
  broken.write(state.trainer);
  for (const auto& [name, schedule] : schedules()) {
    write_schedule(*schedule, name, state.trainer);
  }
  if (!parts.teacher.empty()) state.trainer[kTeacher] = parts.teacher;
  state.own = process_group.rank_state();
  write_replica(process_group, parts.optimizer.state(), state);
  return state;
}

// Saves the current state, while training continues.
void Trainer::Impl::save(bool best) {
  const TraceSpan span(SpanKind::kCheckpoint, "checkpoint");
  finish_saving();
  clock.pause();
  satisfy(StepRequest::kSave);
  process_group.begin(parallel::Section::kCheckpoint, progress.step);
  share_broken();
  const AveragedWeights averaged(parts.optimizer);
  const MeanOfReplicas mean(process_group.averager());
  progress.training_seconds = training_seconds();
  // Only checkpoints that an undisturbed run has, too, so that rewinds are reproducible.
  if (config.spikes.action == "rewind" && checkpoint_trigger.at(progress.step)) {
    progress.rewind_step = progress.step;
    parts.checkpoints.pin(progress.step);
  }
  const TrainingState now = state();
  CheckpointDraft draft = parts.checkpoints.draft_of(now, progress.step);
  draft.slices = has_own_states(now) ? process_group.size() : slices_of(draft.bytes);
  draft.folder = process_group.run_on_rank0([&] {
    parts.checkpoints.begin(draft);
    return draft.folder.string();
  });
  DividedState divided{
      .model = logical_model(), .optimizer = parts.optimizer.logical_state(), .own = now.own};
  if (are_divided(divided.model) || are_divided(divided.optimizer)) {
    for (const LogicalTensor& tensor : replicas_of(step.state())) {
      divided.optimizer.push_back(tensor);
    }
    writer.start(draft, write_slices(*process_group.collectives(), draft, divided), now.trainer,
                 best);
  } else {
    writer.start(draft, now, best);
  }
  is_saving = true;
  checkpoint_trigger.done(progress.step);
  saved_step = progress.step;
  note_saved();
}

// As many slices as processes, if each has enough to write.
int Trainer::Impl::slices_of(int64_t bytes) const {
  const int64_t slices = bytes / *parse_bytes(config.checkpoint_slice);
  return static_cast<int>(std::clamp<int64_t>(slices, 1, process_group.size()));
}

void Trainer::Impl::tell_saved(const std::optional<CheckpointInfo>& info) {
  if (info) tell(&Observer::saved, info->step, info->folder.string());
}

void Trainer::Impl::note_saved() { tell_saved(writer.poll()); }

void Trainer::Impl::finish_saving() {
  if (!is_saving) return;
  is_saving = false;
  clock.pause();
  process_group.begin(parallel::Section::kCheckpoint, saved_step);
  const auto wait = [&] { tell_saved(writer.wait()); };
  if (!process_group.is_first()) wait();
  try {
    process_group.any(false);  // Detects a lost process, whose slice rank 0 would wait for.
  } catch (const DeviceError&) {
    note_saved();  // Errors of writing take precedence.
    throw;
  }
  process_group.run_on_rank0(wait);
}

// Gives processes the model that rank 0 has read into these tensors.
void Trainer::Impl::take_model(const NamedTensors& of_rank0) {
  const std::vector<LogicalTensor> model = logical_model();
  if (!are_divided(model)) {
    process_group.broadcast(of_rank0);
    return;
  }
  process_group.release_parameters();
  scatter_from_rank0(*process_group.collectives(), of_rank0, model);
  process_group.parameters_replaced();
}

// Copies a checkpoint that rank 0 reads into the live tensors of `into`, in all processes.
void Trainer::Impl::load(const std::optional<CheckpointInfo>& checkpoint, TrainingState& into) {
  process_group.run_on_rank0([&] { parts.checkpoints.load(*checkpoint, into); });
  take_model(into.model);
  if (!process_group.is_alone()) {
    scatter_from_rank0(*process_group.collectives(), into.optimizer,
                       parts.optimizer.logical_state());
    process_group.broadcast(step.state());
  }
  process_group.broadcast(into.trainer);
  process_group.load_rank_state(into.own);
  note_of_replicas = read_replicas(process_group, parts.optimizer.state(), into,
                                   read_integer(into.trainer, "step"));
}

void Trainer::Impl::resume(const std::optional<CheckpointInfo>& checkpoint) {
  process_group.run_on_rank0(
      [&] { check_teacher(parts.checkpoints.read_trainer(*checkpoint), parts.teacher); });
  take(checkpoint);
  check_end();
  parts.checkpoints.pin(progress.rewind_step);
  earlier_seconds = progress.training_seconds;
}

// Otherwise a run whose end is before the steps that it has done would end silently.
void Trainer::Impl::check_end() const {
  if (progress.step > pause_step) {
    throw UsageError(fmt::format(
        "--until is step {}, and the run has done {} steps already; give a later point, or omit it",
        pause_step, progress.step));
  }
  if (progress.step <= length.steps) return;
  const std::string asked = length.is_in_steps ? fmt::format("train.steps={}", length.steps)
                                               : fmt::format("train.epochs={:g}", config.epochs);
  throw UsageError(fmt::format(
      "{} is less than the run has done already, {} steps or {:.4g} epochs; give at least that, or "
      "begin another run",
      asked, progress.step, epoch()));
}

// Updates everything that depends on samples or epochs to this history.
void Trainer::Impl::measure(const BatchHistory& history) {
  length = Length::of(config, history);
  pause_step = length.step_of(parts.until);
  evaluation_trigger = {Interval::parse(config.evaluate_every), length};
  checkpoint_trigger = {Interval::parse(config.checkpoint_every), length};
  comparison_trigger = {Interval::parse(config.compare_every), length};
  record_every = std::max<int64_t>(1, length.steps / 500);
}

// Restores the complete state of a checkpoint.
void Trainer::Impl::take(const std::optional<CheckpointInfo>& checkpoint) {
  const AveragedWeights averaged(parts.optimizer);
  TrainingState saved = state();
  load(checkpoint, saved);
  rename_old_keys(saved.trainer);
  data::LoaderState loader_state;
  progress = Progress::from_map(saved.trainer, loader_state);
  skipped_samples.read(saved.trainer);
  broken.read(saved.trainer);
  const int64_t size = parts.train_samples.size();
  if (parts.allow_changed_data) loader_state.position = std::min(loader_state.position, size);
  measure(BatchHistory::resumed(saved.trainer, planned_history(config, loader_config, size)));
  loader.set_batch_sizes(length.history.changes());
  loader.seek(loader_state);
  step.set_splits(progress.splits);
  for (const auto& [name, schedule] : schedules()) {
    check_schedule_state(saved.trainer, name, *schedule);
    read_schedule(saved.trainer, name, *schedule);
  }
  evaluation_trigger.done(progress.evaluated_step);
  checkpoint_trigger.done(progress.step);
  saved_step = progress.step;
  comparison_trigger.done(progress.step);
  requests.clear();
}

// Restores older weights and continues with newer data: counters, schedules and the position in the
// data do not change.
void Trainer::Impl::rewind() {
  wants_rewind = false;
  finish_saving();
  std::optional<CheckpointInfo> target;
  const bool is_there = process_group.run_on_rank0([&] {
    target = parts.checkpoints.of_step(progress.rewind_step);
    return target.has_value();
  });
  if (!is_there) {
    tell(&Observer::noted,
         fmt::format("step {}: a loss spike was skipped; there is no checkpoint yet to rewind "
                     "back to",
                     progress.step));
    return;
  }
  progress.rewinds += 1;
  if (progress.rewinds > config.spikes.limit) {
    throw DataError(
        fmt::format("step {}: a loss spike requires rewind number {}, and "
                    "train.spikes.limit is {}. {}",
                    progress.step, progress.rewinds, config.spikes.limit, what_to_do()));
  }
  clock.pause();
  const AveragedWeights averaged(parts.optimizer);
  TrainingState old = state();
  load(target, old);
  tell(&Observer::noted,
       fmt::format("step {}: loss spike; rewound to the weights of step {} (rewind {} "
                   "of at most {})",
                   progress.step, progress.rewind_step, progress.rewinds, config.spikes.limit));
}

void Trainer::Impl::restore_best() {
  finish_saving();
  const AveragedWeights averaged(parts.optimizer);  // The checkpoint contains averaged weights.
  NamedTensors model = state().model;
  const auto best_step = process_group.run_on_rank0([&]() -> std::optional<int64_t> {
    const auto best = parts.checkpoints.best();
    if (!best || best->step == progress.step) return {};
    model = parts.checkpoints.load_model(*best, model);
    return best->step;
  });
  if (!best_step) return;
  take_model(model);
  if (process_group.averager() != nullptr) process_group.averager()->restart();
  outcome.restored_step = *best_step;
  save(false);
}

void Trainer::Impl::keep(Kept why) {
  report_all();
  if (saved_step != progress.step) save(false);
  finish_saving();
  process_group.run_on_rank0([&] {
    if (const auto newest = parts.checkpoints.newest()) parts.checkpoints.keep(*newest, why);
    // A run that starts from this checkpoint needs the best one, too.
    const auto best = why == Kept::kPrefix ? parts.checkpoints.best() : std::nullopt;
    if (best) parts.checkpoints.keep(*best, why);
  });
}

}  // namespace gallop::train
