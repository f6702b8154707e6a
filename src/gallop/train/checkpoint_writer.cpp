#include "gallop/train/checkpoint_writer.h"

#include <chrono>
#include <system_error>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/progress.h"
#include "gallop/base/text.h"
#include "gallop/base/trace.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/replica_state.h"

namespace gallop::train {

namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(10);
constexpr auto kBetweenLooksAtThread = std::chrono::milliseconds(1);

// The bytes in the folder, which grow while a process writes there.
int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto size = entry.file_size(error);
    if (!error) bytes += static_cast<int64_t>(size) + 1;
  }
  return bytes;
}

bool is_like(const at::Tensor& copy, const at::Tensor& tensor) {
  return copy.scalar_type() == tensor.scalar_type() && copy.sizes() == tensor.sizes() &&
         copy.strides() == tensor.strides();
}

}  // namespace

CheckpointWriter::~CheckpointWriter() {
  is_given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::start(const CheckpointDraft& draft, const TrainingState& state, bool best) {
  if (thread_.joinable()) throw InternalError("checkpoint writer: one is under way");
  job_ = {draft, slice_of_state(draft, state), best};
  if (config_.in_background) copy(job_.slice);
  start_job();
}

void CheckpointWriter::start(const CheckpointDraft& draft, std::shared_ptr<StreamedSlice> slice,
                             std::map<std::string, std::string> trainer, bool best) {
  if (thread_.joinable()) throw InternalError("checkpoint writer: one is under way");
  job_ = {draft, {.trainer = std::move(trainer)}, best, std::move(slice)};
  start_job();
}

void CheckpointWriter::start_job() {
  if (!config_.in_background) {
    write(job_);
    return;
  }
  is_done_ = false;
  const auto work = [this] {
    const ProgressScope scope([this] { moves_ += 1; });
    try {
      write(job_);
    } catch (...) {
      failure_ = std::current_exception();
    }
    is_done_ = true;
  };
  try {
    thread_ = std::thread(work);
  } catch (const std::system_error&) {
    work();  // Steps may have left no memory for the stack of a thread.
  }
}

std::optional<CheckpointInfo> CheckpointWriter::poll() {
  if (thread_.joinable() && !is_done_) return {};
  return wait();
}

std::optional<CheckpointInfo> CheckpointWriter::wait() {
  wait_for_thread();
  if (failure_) write_again(std::exchange(failure_, nullptr));
  return std::exchange(published_, std::nullopt);
}

// Out of memory may have been due to a concurrent step, whose memory is free by now.
void CheckpointWriter::write_again(const std::exception_ptr& failure) {
  if (!out_of_memory(failure) || job_.draft.slices > 1 || job_.streamed) {
    std::rethrow_exception(failure);
  }
  store_.begin(job_.draft);
  write(job_);
}

void CheckpointWriter::wait_for_thread() {
  if (!thread_.joinable()) return;
  for (int64_t seen = moves_; !is_done_; std::this_thread::sleep_for(kBetweenLooksAtThread)) {
    if (const int64_t now = moves_; std::exchange(seen, now) != now) note_progress();
  }
  thread_.join();
}

TrainingState CheckpointWriter::slice_of_state(const CheckpointDraft& draft,
                                               const TrainingState& state) const {
  if (config_.rank >= draft.slices) return {};
  TrainingState slice{.model = slice_of(state.model, config_.rank, draft.slices),
                      .trainer = state.trainer};
  // Those of replicas differ, so that rank 0 writes all of its own.
  if (!has_replicas(state)) {
    slice.optimizer = slice_of(state.optimizer, config_.rank, draft.slices);
  } else if (config_.rank == 0) {
    slice.optimizer = state.optimizer;
  }
  slice.optimizer.insert(slice.optimizer.end(), state.own.begin(), state.own.end());
  return slice;
}

void CheckpointWriter::copy(TrainingState& slice) {
  const at::NoGradGuard no_gradients;
  size_t next = 0;
  for (NamedTensors* list : {&slice.model, &slice.optimizer}) {
    for (auto& [name, tensor] : *list) {
      if (next == copies_.size()) copies_.emplace_back();
      at::Tensor& copy = copies_[next++].tensor;
      if (!copy.defined() || !is_like(copy, tensor)) {
        copy = at::empty_like(tensor, at::TensorOptions(at::kCPU));
      }
      copy.copy_(tensor);
      tensor = copy;
    }
  }
  copies_.resize(next);
}

void CheckpointWriter::write(const Job& job) {
  const TraceSpan span(SpanKind::kCheckpoint, "write checkpoint");
  const auto& [draft, slice, best, streamed] = job;
  if (config_.rank >= draft.slices) return;
  WrittenFiles files =
      streamed ? streamed->finish() : CheckpointStore::write_slice(draft, slice, config_.rank);
  if (draft.slices > 1) {
    write_slice_note(draft.folder, config_.rank, draft.slices, files);
    if (config_.rank > 0) return;
    files = wait_for_slices(draft);
  }
  published_ = store_.publish(draft, std::move(files), slice.trainer, best);
}

WrittenFiles CheckpointWriter::wait_for_slices(const CheckpointDraft& draft) const {
  const double begin = monotonic_seconds();
  for (int64_t seen = 0;;) {
    if (auto files = take_slice_notes(draft.folder, draft.slices)) return std::move(*files);
    // Growing files are progress of the other processes.
    if (const int64_t now = bytes_in(draft.folder); std::exchange(seen, now) != now) {
      note_progress();
    }
    std::error_code error;
    const bool is_there = fs::exists(draft.folder, error);
    if (!is_there || is_given_up_ || monotonic_seconds() - begin > config_.seconds) {
      fs::remove_all(draft.folder, error);
      throw DeviceError(
          fmt::format("{}: another process has not written its part of the checkpoint{}",
                      printable(draft.folder.string()),
                      is_there ? "" : "; the folder is gone: do all processes share it?"));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace gallop::train
