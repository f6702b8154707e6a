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

/// A trained model: a checkpoint of a run.
struct TrainedModel {
  fs::path folder;
  ResolvedRecipe recipe;
  data::Signature inputs;
  std::unique_ptr<model::Model> model;
  train::CheckpointInfo checkpoint;

  int64_t step() const { return checkpoint.step; }
  /// The task of its data.
  const train::Task& task() const;
  /// The precision of evaluations and predictions; see precision::for_evaluation().
  precision::Precision precision() const;
};

/// Stores the input signature of the run's model in its folder, and reads it below.
void write_inputs(const fs::path& folder, data::Signature inputs);
data::Signature read_inputs(const fs::path& folder);
bool has_inputs(const fs::path& folder);

/// The checkpoint folders for `name`: a run by its path or by its name under `runs`, with
/// `checkpoint` "best", "latest", a step number or "snapshots", or one checkpoint by its path.
/// Throws UsageError with the available ones, DataError if it is damaged.
std::vector<fs::path> find_checkpoints(const std::string& runs, const std::string& name,
                                       const std::string& checkpoint);

/// The same for a single checkpoint. Throws UsageError if there are several.
fs::path find_checkpoint(const std::string& runs, const std::string& name,
                         const std::string& checkpoint);

/// Opens a trained run; arguments as for find_checkpoint().
TrainedModel open_trained_model(const Registries& registries, const std::string& runs,
                                const std::string& name, const std::string& checkpoint,
                                const std::vector<Override>& overrides);

}  // namespace gallop::app
