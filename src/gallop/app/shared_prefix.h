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

/// A run whose recipe may begin like another one's.
struct PrefixSource {
  fs::path folder;
  Recipe recipe;
};

/// The runs in the folder `runs`, besides the one of this name, of which shares_prefix() is true.
/// What `resolved` leaves to be measured is taken from the first of them, as a run that goes on
/// takes it.
std::vector<PrefixSource> find_prefix_sources(const Registries& registries, const fs::path& runs,
                                              const std::string& name, ResolvedRecipe& resolved);

/// The steps that a run has from another one, as its folder says in shared.json.
struct SharedPrefix {
  std::string run;  ///< The other's name.
  int64_t step = 0;

  /// Nothing where a run has all of its steps by itself.
  static std::optional<SharedPrefix> read(const fs::path& folder);
};

/// Has the run in `folder` begin with the checkpoint of a sibling that is the furthest of those up
/// to which both train alike, bit for bit, but not after step `last`: its log up to there becomes
/// the run's, and so do its best checkpoint so far and its times. Nothing where there is none.
/// Damaged checkpoints are passed over with a line each. `info`: how the run is made; one made by
/// another version or kind of machine, or from other data, has no such beginning.
std::optional<SharedPrefix> share_prefix(Session& session, const track::RunInfo& info,
                                         const std::vector<PrefixSource>& prefix_sources,
                                         const fs::path& folder,
                                         train::CheckpointStore& checkpoints, int64_t last);

/// Whether its process died in the middle of share_prefix(): what the run has does not count.
bool is_half_shared(const fs::path& folder);

/// Removes what share_prefix() has left behind in the folder of a run where its process died in
/// the middle of it; nothing was trained then.
void remove_half_shared(const fs::path& folder);

/// Notes that not all steps of the run in `folder` were trained by its recipe alone, or not by one
/// process: no other run is to begin with them.
void note_foreign_steps(const fs::path& folder, const std::string& why);

/// What was noted so; empty where nothing was.
std::string foreign_steps(const fs::path& folder);

/// Prints evaluations of earlier processes of a run, up to `step`, as lines of JSON like those of
/// new ones; and which steps it shares.
void print_earlier(const fs::path& folder, int64_t step);

}  // namespace gallop::app
