#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/streamed_slice.h"

namespace gallop::train {

/// How checkpoints are written.
struct WriterConfig {
  bool in_background = true;  ///< Write in a thread, from a copy; else before start() returns.
  int rank = 0;               ///< The slice of this process; rank 0 publishes.
  double seconds = 600;       ///< Time for which rank 0 waits for the slices of others.
};

/// Writes the checkpoints of a run, one at a time, while the training continues.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointStore& store, const WriterConfig& config)
      : store_(store), config_(config) {}
  /// Waits for the checkpoint in progress, but not for missing slices of others; errors are not
  /// reported.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Writes this process's slice of `state`. Throws InternalError while an earlier checkpoint is in
  /// progress.
  void start(const CheckpointDraft& draft, const TrainingState& state, bool best);
  /// The same for a slice whose tensors are written already: syncs its files and, in rank 0,
  /// publishes the checkpoint, with TrainingState::trainer.
  void start(const CheckpointDraft& draft, std::shared_ptr<StreamedSlice> slice,
             std::map<std::string, std::string> trainer, bool best);
  /// The checkpoint that was published since the last call; nothing while it is in progress, or if
  /// another process publishes. Throws an error of writing, once.
  std::optional<CheckpointInfo> poll();
  /// As poll(), but waits for the checkpoint in progress; reports progress while it is written (see
  /// note_progress()).
  std::optional<CheckpointInfo> wait();

 private:
  struct Job {
    CheckpointDraft draft;
    TrainingState slice;
    bool best = false;
    std::shared_ptr<StreamedSlice> streamed{};  ///< In place of the slice's tensors.
  };
  TrainingState slice_of_state(const CheckpointDraft& draft, const TrainingState& state) const;
  void start_job();
  void copy(TrainingState& slice);
  void write(const Job& job);
  void write_again(const std::exception_ptr& failure);
  void wait_for_thread();
  WrittenFiles wait_for_slices(const CheckpointDraft& draft) const;

  CheckpointStore& store_;
  WriterConfig config_;
  Job job_;              ///< The most recent job.
  NamedTensors copies_;  ///< Reused by the next checkpoint, as allocating memory is slow.
  std::thread thread_;
  std::atomic<bool> is_done_ = false, is_given_up_ = false;
  std::atomic<int64_t> moves_ = 0;  ///< Progress of the thread.
  std::optional<CheckpointInfo> published_;
  std::exception_ptr failure_;
};

}  // namespace gallop::train
