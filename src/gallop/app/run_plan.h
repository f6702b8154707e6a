#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/resume_options.h"
#include "gallop/app/run_place.h"
#include "gallop/app/shared_prefix.h"
#include "gallop/track/run_folder.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

/// What is known of a run before its data are read. Nothing is written to make one.
struct RunPlan {
  ResolvedRecipe resolved;
  std::vector<PrefixSource> prefix_sources{};  ///< That may begin like it, where steps are shared.

  // Of a run that is resumed.
  std::optional<track::RunFolder> folder{};
  std::vector<OptionChange> changes{};  ///< All of them allowed.
  std::vector<Override> overrides{};    ///< As given on the command line.
  bool is_finished = false;             ///< By its options so far.
  /// The checkpoint that it continues from, and TrainingState::trainer of it. Nothing where it has
  /// none.
  std::optional<train::CheckpointInfo> checkpoint{};
  std::map<std::string, std::string> trainer{};
};

/// Prints damage of a checkpoint, for CheckpointStore::newest_intact().
void say_damaged(const std::string& damage);

/// A new run from a recipe, or with `place.resume_if_there` one that is there. Nothing where that
/// is finished, which is said. Throws UsageError for options that a resume does not allow.
std::optional<RunPlan> plan_start(const Registries& registries, const RunPlace& place,
                                  const std::string& recipe,
                                  const std::vector<Override>& overrides);

/// A run that continues with other options. Throws and returns like plan_start().
std::optional<RunPlan> plan_resume(const Registries& registries, const RunPlace& place,
                                   const std::string& name, const std::vector<Override>& overrides);

/// Compares the data of a run, these files and folders, with what they were: names and sizes, and
/// contents where those are known and little has to be read. Returns what has changed, in a line,
/// or nothing. Throws UsageError where something has and `is_allowed` is false.
std::string check_data(const fs::path& run, const std::vector<std::string>& data, bool is_allowed);

}  // namespace gallop::app
