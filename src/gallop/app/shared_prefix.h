#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/session.h"
#include "gallop/base/file.h"
#include "gallop/track/run_info.h"
#include "gallop/train/checkpoint.h"

namespace gallop::app {

/// A run whose training may have the same prefix.
struct PrefixSource {
  fs::path folder;
  Recipe recipe;
};

/// The runs in the folder `runs`, except the one of this name, for which shares_prefix() is true.
/// Unresolved options of `resolved` are resolved by the first of them, as on resume.
std::vector<PrefixSource> find_prefix_sources(const Registries& registries, const fs::path& runs,
                                              const std::string& name, ResolvedRecipe& resolved);

/// The steps that a run took over from another one, from shared.json in its folder.
struct SharedPrefix {
  std::string run;  ///< Name of the other run.
  int64_t step = 0;

  /// Nothing if the run trained all its steps itself.
  static std::optional<SharedPrefix> read(const fs::path& folder);
};

/// Starts the run in `folder` from the latest sibling checkpoint up to which both trainings are
/// bit-identical, but not after step `last`: takes over its log up to there, its best checkpoint so
/// far and its times. Nothing if there is none. Damaged checkpoints are skipped with a message.
/// `info` describes this run: runs of other versions, kinds of machines, or data are not used.
std::optional<SharedPrefix> share_prefix(Session& session, const track::RunInfo& info,
                                         const std::vector<PrefixSource>& prefix_sources,
                                         const fs::path& folder,
                                         train::CheckpointStore& checkpoints, int64_t last);

/// Whether share_prefix() was interrupted, so that the run's content is invalid.
bool is_half_shared(const fs::path& folder);

/// Removes the left-overs of an interrupted share_prefix() from a run's folder; nothing was trained
/// then.
void remove_half_shared(const fs::path& folder);

/// Records that some steps of the run in `folder` were not trained by its recipe alone, or not by
/// one process, so that no other run may start from them.
void note_foreign_steps(const fs::path& folder, const std::string& why);

/// The reason recorded by note_foreign_steps(); empty if there is none.
std::string foreign_steps(const fs::path& folder);

/// Prints evaluations of earlier processes of a run, up to `step`, as lines of JSON like new ones,
/// and the shared steps.
void print_earlier(const fs::path& folder, int64_t step);

}  // namespace gallop::app
