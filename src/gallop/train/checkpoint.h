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

/// Everything that a run continues from.
struct TrainingState {
  NamedTensors model;                          ///< Parameters and buffers.
  NamedTensors optimizer;                      ///< State of the optimizer and the loss scaler.
  std::map<std::string, std::string> trainer;  ///< Loader state, counters, best score, ...
  /// What processes have for themselves (see parallel::Strategy::rank_state()), by
  /// rank_state_name(): of one of them where it is saved, each of which then writes a slice; of all
  /// where it was read.
  NamedTensors own{};
};

/// The name of such a tensor of this process.
std::string rank_state_name(int rank, const std::string& name);

/// A complete checkpoint on disk: all of its files are there in full length. Only reading it tells
/// whether their checksums hold.
struct CheckpointInfo {
  fs::path folder;
  int64_t step = 0;
  int64_t sequence = 0;  ///< Counts the checkpoints of a run in the order of their publication.
  int64_t bytes = 0;
  bool is_verified = false;  ///< All checksums were found right, and are not looked at again.
};

struct CheckpointConfig {
  int64_t keep_last = 2;  ///< Newest checkpoints to keep; the best one stays besides.
};

/// Why a checkpoint stays that is neither new nor the best.
enum class Kept {
  kSnapshot,   ///< For an ensemble.
  kBeginning,  ///< For runs that begin alike.
};

/// A checkpoint that is being written.
struct CheckpointDraft {
  fs::path folder;  ///< ".tmp-..."
  int64_t step = 0;
  int slices = 1;     ///< See slice_of(); each may be written by another process.
  int64_t bytes = 0;  ///< That it needs, about.
};

/// The checkpoints of one run, in one folder (RUN/checkpoints). Only one process may begin and
/// publish them; any number may write slices, and read.
///
///     step-00001234/{model,state}.safetensors  trainer.json  manifest.json
///     latest, best                             name of a folder each
///     snapshots, beginnings                    names of folders, a line each (Kept)
///
/// A checkpoint is written to ".tmp-...", made durable and renamed, then the pointers move. A
/// process that dies at any instant leaves the older checkpoints untouched.
class CheckpointStore {
 public:
  /// The folder is made at the first save. Throws UsageError where nothing would be kept.
  explicit CheckpointStore(fs::path folder, const CheckpointConfig& config = {});

  /// Publishes a checkpoint, moves "latest" to it and, where it is the best so far, "best". Removes
  /// what died saves left behind and what `keep_last` no longer covers. Throws DeviceError, which
  /// names the path and the bytes needed, where the disk is full or cannot be written; nothing
  /// half-written stays then.
  CheckpointInfo save(const TrainingState& state, int64_t step, bool best);

  /// The same in parts. A draft of what is to be saved, in one slice; nothing is made yet.
  CheckpointDraft draft_of(const TrainingState& state, int64_t step) const;
  /// Makes its folder, and removes what died saves have left behind.
  void begin(const CheckpointDraft& draft) const;
  /// Writes the tensors of `state`, which are slice number `slice` of the whole state's.
  static WrittenFiles write_slice(const CheckpointDraft& draft, const TrainingState& state,
                                  int slice);
  /// Publishes what has been written. `files`: of all slices.
  CheckpointInfo publish(const CheckpointDraft& draft, WrittenFiles files,
                         const std::map<std::string, std::string>& trainer, bool best);

  /// Publishes a copy of another run's checkpoint, as what this run begins with: its best score is
  /// forgotten, and load() takes it for an optimizer that keeps more beside the weights, or less,
  /// as one with momentum does. Files are shared where both lie on one file system. Throws
  /// DataError where it is damaged, DeviceError like save().
  CheckpointInfo adopt(const CheckpointInfo& other);
  /// The same as a checkpoint that this run would have come to by itself: nothing is lost.
  /// `best`: as save() takes it.
  CheckpointInfo take_over(const CheckpointInfo& other, bool best);

  /// From now on the newest checkpoint of this step stays, in place of that spared before.
  void spare(int64_t step) { spared_step_ = step; }
  /// The newest of this step; empty where there is none.
  std::optional<CheckpointInfo> of_step(int64_t step) const;

  /// Adds a checkpoint to those that stay. Throws DeviceError like save().
  void keep(const CheckpointInfo& checkpoint, Kept why);

  /// Copies a checkpoint into the live tensors of `state`, and puts what else is in it into
  /// `state.trainer` and `state.own`. All sizes and checksums are verified first: throws DataError
  /// that names the damaged file, or UsageError that lists every difference in name, shape or type.
  /// Nothing is copied then.
  void load(const CheckpointInfo& checkpoint, TrainingState& state) const;

  /// The same for the model alone, as evaluation needs it; only its file is verified. Weights saved
  /// in bf16 may go into fp32 ones.
  void load_model(const CheckpointInfo& checkpoint, const NamedTensors& model) const;

  /// The model's tensors, as they were saved: views into mapped files. Throws DataError where one
  /// is damaged.
  NamedTensors read_model(const CheckpointInfo& checkpoint) const;

  /// Reads all of a checkpoint. Throws DataError that names what is damaged or missing in it.
  static void verify(const CheckpointInfo& checkpoint);

  /// TrainingState::trainer alone. Throws DataError where it is damaged.
  std::map<std::string, std::string> read_trainer(const CheckpointInfo& checkpoint) const;
  /// A checksum of the model in it.
  std::string model_checksum(const CheckpointInfo& checkpoint) const;

  /// Complete checkpoints, the last published first. The next in the list is what to take where one
  /// is damaged.
  std::vector<CheckpointInfo> list() const;
  /// Where "latest" points, or the last published one where that is gone; empty where there is
  /// none. Throws DataError that names what is damaged or missing in it.
  std::optional<CheckpointInfo> newest() const;
  /// The newest of which nothing is damaged: all of it is read. `told` is called for those that
  /// are, a line each. Empty where there is none; throws DataError where there are, but none is
  /// intact.
  std::optional<CheckpointInfo> newest_intact(
      const std::function<void(const std::string& line)>& told) const;
  /// Where "best" points; empty where there is none. Throws like newest().
  std::optional<CheckpointInfo> best() const;
  /// Those that were kept as snapshots, in that order. Throws like newest().
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
  int64_t spared_step_ = -1;
};

}  // namespace gallop::train
