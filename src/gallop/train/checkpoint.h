#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// Everything that a run continues from.
struct TrainingState {
  NamedTensors model;                          ///< Parameters and buffers.
  NamedTensors optimizer;                      ///< State of the optimizer and the loss scaler.
  std::map<std::string, std::string> trainer;  ///< Loader state, counters, best score, ...
};

/// A complete checkpoint on disk: all of its files are there in full length. Only reading it tells
/// whether their checksums hold.
struct CheckpointInfo {
  fs::path folder;
  int64_t step = 0;
  int64_t sequence = 0;  ///< Counts the checkpoints of a run in the order of their publication.
  int64_t bytes = 0;
};

struct CheckpointConfig {
  int64_t keep_last = 2;  ///< Newest checkpoints to keep; the best one stays besides.
};

/// The checkpoints of one run, in one folder (RUN/checkpoints). Only one process may save; any
/// number may read.
///
///     step-00001234/{model,state}.safetensors  trainer.json  manifest.json
///     latest, best                             name of a folder each
///     snapshots                                names of folders, a line each
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

  /// From now on the newest checkpoint of this step stays, in place of that spared before.
  void spare(int64_t step) { spared_step_ = step; }
  /// The newest of this step; empty where there is none.
  std::optional<CheckpointInfo> of_step(int64_t step) const;

  /// Adds a checkpoint to the snapshots, which stay. Throws DeviceError like save().
  void keep(const CheckpointInfo& checkpoint);

  /// Copies a checkpoint into the live tensors of `state` and fills in `state.trainer`. All sizes
  /// and checksums are verified first: throws DataError that names the damaged file, or UsageError
  /// that lists every difference in name, shape or type. Nothing is copied then.
  void load(const CheckpointInfo& checkpoint, TrainingState& state) const;

  /// The same for the model alone, as evaluation needs it; only its file is verified. Weights saved
  /// in bf16 may go into fp32 ones.
  void load_model(const CheckpointInfo& checkpoint, const NamedTensors& model) const;

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
  /// Where "best" points; empty where there is none. Throws like newest().
  std::optional<CheckpointInfo> best() const;
  /// Those that were kept, in that order. Throws like newest().
  std::vector<CheckpointInfo> snapshots() const;

 private:
  CheckpointInfo publish(const TrainingState& state, const std::string& trainer,
                         int64_t step) const;
  std::vector<fs::path> follow_all(const char* pointer) const;
  std::optional<fs::path> follow(const char* pointer) const;
  void remove_remains() const;
  void remove_old() const;

  fs::path folder_;
  CheckpointConfig config_;
  int64_t spared_step_ = -1;
};

}  // namespace gallop::train
