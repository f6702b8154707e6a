#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/checkpoint.h"

namespace gallop::train {

/// Who writes which part of a checkpoint.
struct WriterConfig {
  bool in_background = true;  ///< By a thread, from a copy; else before start() returns.
  int rank = 0;               ///< Its slice; the first process publishes.
  double seconds = 600;       ///< That the first process waits for the slices of others.
};

/// Writes the checkpoints of a run, one at a time, while the training goes on.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointStore& store, const WriterConfig& config)
      : store_(store), config_(config) {}
  /// Waits for what is under way, without the slices of others that are not there; what goes wrong
  /// is not told.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Writes the part of `state` that is this process's. Throws InternalError while an earlier one
  /// is under way.
  void start(const CheckpointDraft& draft, const TrainingState& state, bool best);
  /// What has been published since it was asked last; nothing while that is under way, or where
  /// another process publishes. Throws what went wrong, once.
  std::optional<CheckpointInfo> poll();
  /// The same, but waits for the end of what is under way; goes ahead as that does (see
  /// note_progress()).
  std::optional<CheckpointInfo> wait();

 private:
  struct Job {
    CheckpointDraft draft;
    TrainingState slice;
    bool best = false;
  };
  TrainingState slice_of_state(const CheckpointDraft& draft, const TrainingState& state) const;
  void copy(TrainingState& slice);
  void write(const Job& job);
  void write_again(const std::exception_ptr& failure);
  void wait_for_thread();
  WrittenFiles wait_for_slices(const CheckpointDraft& draft) const;

  CheckpointStore& store_;
  WriterConfig config_;
  Job job_;              ///< The last.
  NamedTensors copies_;  ///< Kept from one checkpoint to the next, as new memory is slow.
  std::thread thread_;
  std::atomic<bool> is_done_ = false, is_given_up_ = false;
  std::atomic<int64_t> moves_ = 0;  ///< Of the thread.
  std::optional<CheckpointInfo> published_;
  std::exception_ptr failure_;
};

}  // namespace gallop::train
