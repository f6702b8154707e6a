#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/resume_options.h"
#include "gallop/app/run_options.h"
#include "gallop/app/shared_prefix.h"
#include "gallop/base/named_files.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

/// The plan of a run before its data are read. Planning writes nothing.
struct RunPlan {
  ResolvedRecipe resolved;
  /// Runs that may have the same prefix, if steps are shared.
  std::vector<PrefixSource> prefix_sources{};

  // For a resumed run:
  std::optional<track::RunFolder> folder{};
  std::vector<OptionChange> changes{};  ///< All allowed.
  std::vector<Override> overrides{};    ///< As given on the command line.
  bool is_finished = false;             ///< According to the options so far.
  /// The checkpoint to resume from, and its TrainingState::trainer. Nothing if there is none.
  std::optional<train::CheckpointInfo> checkpoint{};
  std::map<std::string, std::string> trainer{};
};

/// Prints damage of a checkpoint, for CheckpointStore::newest_intact().
void say_damaged(const std::string& damage);

/// Plans a new run from a recipe, or with `options.resume_if_there` the resumption of an existing
/// one. Nothing, after a message, if that is finished. Throws UsageError for options that must not
/// change.
std::optional<RunPlan> plan_start(const Registries& registries, const RunOptions& options,
                                  const std::string& recipe,
                                  const std::vector<Override>& overrides);

/// Plans the resumption of a run with other options. Throws and returns like plan_start().
std::optional<RunPlan> plan_resume(const Registries& registries, const RunOptions& options,
                                   const std::string& name, const std::vector<Override>& overrides);

/// Compares the data files and folders of a run with the recorded ones: names and sizes, and
/// contents if these are known and small. Returns a line about the changes, or an empty text.
/// Throws UsageError if something changed and `is_allowed` is false.
std::string check_data(const fs::path& run, const DataPaths& data, bool is_allowed);

}  // namespace gallop::app
