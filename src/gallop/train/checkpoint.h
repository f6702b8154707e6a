#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/checkpoint_slices.h"

namespace gallop::train {

/// The state from which a run resumes.
struct TrainingState {
  NamedTensors model;                          ///< Parameters and buffers.
  NamedTensors optimizer;                      ///< State of the optimizer and the loss scaler.
  std::map<std::string, std::string> trainer;  ///< Loader state, counters, best score, ...
  /// State that differs among processes (see parallel::Strategy::rank_state()), by
  /// rank_state_name(): for saving, of the process that writes its slice; after load(), of all.
  NamedTensors own{};
};

/// The name of a tensor of rank state in a checkpoint.
std::string rank_state_name(int rank, const std::string& name);

/// A complete checkpoint on disk: all of its files exist in full length. Their checksums are
/// verified only when they are read.
struct CheckpointInfo {
  fs::path folder;
  int64_t step = 0;
  int64_t sequence = 0;  ///< Counts the checkpoints of a run in the order of their publication.
  int64_t bytes = 0;
  bool is_verified = false;  ///< All checksums were verified, and need not be verified again.
};

struct CheckpointConfig {
  int64_t keep_last = 2;  ///< Newest checkpoints to keep, in addition to the best one.
};

/// Why a checkpoint is kept that is neither new nor the best.
enum class Kept {
  kSnapshot,  ///< For an ensemble.
  kPrefix,    ///< For runs that share a prefix.
};

/// A checkpoint that is being written.
struct CheckpointDraft {
  fs::path folder;  ///< ".tmp-..."
  int64_t step = 0;
  int slices = 1;     ///< See slice_of(); each may be written by another process.
  int64_t bytes = 0;  ///< Approximate bytes on disk.
};

/// The checkpoints of one run, in one folder (RUN/checkpoints). Only one process may begin and
/// publish them; any number may write slices, and read.
///
///    step-00001234/{model,state}.safetensors  trainer.json  manifest.json
///    latest, best                             name of a folder each
/// ///    snapshots, beginnings                    names of folders, one per line (Kept)
///
/// A checkpoint is written to ".tmp-...", flushed to disk and renamed, and then the pointers are
/// updated. A process that dies at any instant leaves the older checkpoints untouched.
class CheckpointStore {
 public:
  /// Creates the folder at the first save. Throws UsageError if no checkpoint would be kept.
  explicit CheckpointStore(fs::path folder, const CheckpointConfig& config = {});

  /// Publishes a checkpoint, points "latest" to it and, if it is the best so far, "best". Removes
  /// remains of interrupted saves and checkpoints beyond `keep_last`. Throws DeviceError, which
  /// names the path and the bytes needed, if the disk is full or cannot be written; no partial
  /// checkpoint is left behind then.
  CheckpointInfo save(const TrainingState& state, int64_t step, bool best);

  /// save() consists of the following functions. Returns the draft of a checkpoint of `state`, in
  /// one slice; writes nothing.
  CheckpointDraft draft_of(const TrainingState& state, int64_t step) const;
  /// Creates the draft's folder, and removes remains of interrupted saves.
  void begin(const CheckpointDraft& draft) const;
  /// Writes the tensors of `state`, which are those of slice `slice`.
  static WrittenFiles write_slice(const CheckpointDraft& draft, const TrainingState& state,
                                  int slice);
  /// Publishes a draft whose slices are written. `files` lists those of all slices.
  CheckpointInfo publish(const CheckpointDraft& draft, WrittenFiles files,
                         const std::map<std::string, std::string>& trainer, bool best);

  /// Publishes a copy of another run's checkpoint as the initial state of this run: its best score
  /// is dropped, and load() accepts it for an optimizer with more or fewer states, as with
  /// momentum. Files are hard-linked if both are on one file system. Throws DataError if it is
  /// damaged, DeviceError like save().
  CheckpointInfo adopt(const CheckpointInfo& other);
  /// As adopt(), for a checkpoint that this run would have reached itself: nothing is dropped.
  /// `best` is as in save().
  CheckpointInfo take_over(const CheckpointInfo& other, bool best);

  /// Keeps the newest checkpoint of this step from now on, instead of the step given before.
  void pin(int64_t step) { pinned_step_ = step; }
  /// The newest checkpoint of this step; empty if there is none.
  std::optional<CheckpointInfo> of_step(int64_t step) const;

  /// Keeps a checkpoint permanently. Throws DeviceError like save().
  void keep(const CheckpointInfo& checkpoint, Kept why);

  /// Copies a checkpoint into the live tensors of `state`, and sets `state.trainer` and
  /// `state.own`. All sizes and checksums are verified first: throws DataError that names the
  /// damaged file, or UsageError that lists every difference in name, shape or type. Nothing is
  /// copied then. A tensor on the meta device, of which processes have parts, becomes the saved
  /// one.
  void load(const CheckpointInfo& checkpoint, TrainingState& state) const;

  /// As load(), for the model alone, as evaluation needs it; only its file is verified. bf16
  /// weights may be loaded into fp32 tensors. Returns `model`.
  NamedTensors load_model(const CheckpointInfo& checkpoint, NamedTensors model) const;

  /// The model's tensors as they were saved, views into mapped files. Throws DataError if one is
  /// damaged.
  NamedTensors read_model(const CheckpointInfo& checkpoint) const;

  /// Reads a checkpoint completely. Throws DataError that names what is damaged or missing.
  static void verify(const CheckpointInfo& checkpoint);

  /// Reads TrainingState::trainer alone. Throws DataError if it is damaged.
  std::map<std::string, std::string> read_trainer(const CheckpointInfo& checkpoint) const;
  /// The checksum of the model in a checkpoint.
  std::string model_checksum(const CheckpointInfo& checkpoint) const;

  /// Complete checkpoints in the order in which to try them: the last published first.
  std::vector<CheckpointInfo> list() const;
  /// The checkpoint that "latest" names, or the last published one if that is missing; empty if
  /// there is none. Throws DataError that names what is damaged or missing in it.
  std::optional<CheckpointInfo> newest() const;
  /// The newest undamaged checkpoint, which is read completely. `on_damage` is called with a line
  /// for each damaged one. Empty if there is no checkpoint; throws DataError if none is intact.
  std::optional<CheckpointInfo> newest_intact(
      const std::function<void(const std::string& line)>& on_damage) const;
  /// The checkpoint that "best" names; empty if there is none. Throws like newest().
  std::optional<CheckpointInfo> best() const;
  /// The checkpoints that were kept as snapshots, in that order. Throws like newest().
  std::vector<CheckpointInfo> snapshots() const;

 private:
  CheckpointInfo copy(const CheckpointInfo& other,
                      const std::map<std::string, std::string>& trainer, bool best);
  fs::path draft_folder(int64_t step) const;
  std::vector<fs::path> follow_all(const char* pointer) const;
  std::optional<fs::path> follow(const char* pointer) const;
  void remove_remains() const;
  void remove_old() const;

  fs::path folder_;
  CheckpointConfig config_;
  int64_t pinned_step_ = -1;
};

}  // namespace gallop::train
