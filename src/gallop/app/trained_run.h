#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/run_inputs.h"
#include "gallop/base/file.h"
#include "gallop/precision/precision.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

/// A model with the weights of one of a run's checkpoints.
struct TrainedRun {
  fs::path folder;
  ResolvedRecipe recipe;
  data::Signature inputs;
  std::unique_ptr<model::Model> model;
  train::CheckpointInfo checkpoint;

  int64_t step() const { return checkpoint.step; }
  /// Of evaluations and predictions; see precision::for_evaluation().
  precision::Precision precision() const;
};

/// Keeps what the run's model expects in its folder, and reads it.
void write_inputs(const fs::path& folder, data::Signature inputs);
data::Signature read_inputs(const fs::path& folder);
bool has_inputs(const fs::path& folder);

/// The folders of the checkpoints that `name` means: a run by its path or by its name under `runs`,
/// of which `checkpoint` is "best", "latest", a step's number or "snapshots", or one checkpoint by
/// its path. Throws UsageError with what there is, DataError where it is damaged.
std::vector<fs::path> find_checkpoints(const std::string& runs, const std::string& name,
                                       const std::string& checkpoint);

/// The same, where they must mean one. Throws UsageError where they do not.
fs::path find_checkpoint(const std::string& runs, const std::string& name,
                         const std::string& checkpoint);

/// Opens a run for use; arguments as those of find_checkpoint().
TrainedRun open_trained_run(const Registries& registries, const std::string& runs,
                            const std::string& name, const std::string& checkpoint,
                            const std::vector<Override>& overrides);

}  // namespace gallop::app
