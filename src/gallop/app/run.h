#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/batch_finder.h"
#include "gallop/app/console.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/run_options.h"
#include "gallop/app/run_plan.h"
#include "gallop/app/session.h"
#include "gallop/app/shared_prefix.h"
#include "gallop/app/signals.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_info.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// A training run: a session with a folder, its log and its checkpoints. start_run() and
/// resume_run() prepare it; the folder is then locked by this process, or by rank 0 of its group.
class Run {
 public:
  /// `context` must outlive it. `resumed` is empty for a new run. Throws as Session does.
  Run(ResolvedRecipe resolved, const RunOptions& options, const DistributedContext& context,
      const ResumedRun& resumed);

  /// Trains to the end, or until a signal. From the first step on `signals` request a checkpoint;
  /// before, they end the process.
  train::Outcome train(ConsoleStyle style, SignalGuard& signals);
  /// Makes all parameters of the model whole, of which this process may have only parts after
  /// train(). All processes call it together.
  void gather_parameters();

  const fs::path& path() const { return path_; }
  /// Whether `train.prove` is set.
  bool is_to_be_proven() const { return session_.recipe().train.prove; }

  // All processes of a group call these.

  /// Loads the checkpoint of a run that continues; `plan` is that of rank 0. Throws UsageError if
  /// the run has nothing left to train.
  void restore(const std::optional<RunPlan>& plan, const StopRequest& stop);
  /// Uses the folder that rank 0 has created or continues.
  void look_at(const fs::path& path);

  /// Checks that the run can start with what begin_from() has adopted from the run in `from`, which
  /// only rank 0 needs. Otherwise removes it, with the folder if the run is new, and throws.
  void check_beginning(const fs::path& from, bool is_new, const StopRequest& stop);

  /// Proves the first steps (see prove_training()). Throws InternalError if they differ from the
  /// reference.
  void prove(const StopRequest& stop);

  // Only rank 0 calls these.

  /// Checks that the run of `plan` can continue with these data. Throws DataError and UsageError.
  void check_against(const RunPlan& plan);
  /// Finds the checkpoint of the run in `folder` for begin_from(). Throws UsageError if there is
  /// none, DataError if that run has other data.
  void find_beginning(const fs::path& folder);
  /// Creates the folder of a new run.
  void create();
  /// Continues in the folder of `plan`, with its changed options; nothing may fail after it.
  void commit(RunPlan& plan);
  /// Starts with what find_beginning() has found.
  void begin_from(const fs::path& folder);
  /// Starts where it and one of these diverge, unless it has started.
  void share_with(const std::vector<PrefixSource>& prefix_sources);
  /// Keeps how `data.batch_size: auto` was resolved; before create() or commit().
  void take_batch(FoundBatch found) { batch_ = std::move(found); }

 private:
  Recipe& recipe() { return session_.recipe(); }
  const data::DataModule& data() const { return session_.data(); }
  std::string recipe_yaml() { return session_.resolved().to_yaml(false); }
  track::RunInfo info() const;
  void place_in(track::RunFolder folder);
  void discard_beginning(bool is_new);
  void build_trainer(const StopRequest& stop);
  void resume_trainer();
  bool find_lr(ConsoleStyle style, const StopRequest& stop);
  void introduce(ConsoleStyle style);
  void say_resumed(const train::CheckpointInfo& from) const;
  std::vector<int64_t> steps_to_keep() const;
  std::vector<MadeChoice> choices() const;
  std::vector<std::string> notes();
  std::string resume_command() const;
  std::string text_of_resuming() const;

  const DistributedContext& context_;
  RunOptions options_;
  Session session_;
  std::optional<track::RunFolder> folder_;  // On rank 0.
  std::optional<StartUpEnd> start_up_end_;  // Until training has a log.
  fs::path path_;
  std::optional<train::CheckpointStore> checkpoints_;
  std::optional<train::CheckpointInfo>
      beginning_;  // A checkpoint of the run that this one starts from.
  std::optional<train::CheckpointInfo>
      checkpoint_;  // The checkpoint that the run continues from; on rank 0 only.
  std::optional<SharedPrefix> shared_;
  std::optional<FoundBatch> batch_;
  std::string padding_;                         // See introduce().
  std::string changed_options_, changed_data_;  // Changes of a resume, one line each.
  std::optional<train::Trainer> trainer_;
  bool has_adopted_ = false;   // Whether begin_from() has given it its only checkpoint.
  bool starts_again_ = false;  // Whether it continues a run that has no checkpoint.
  bool is_resumed_ = false;    // Whether the trainer was restored from the checkpoint.
};

}  // namespace gallop::app
