#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/pruner.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The trials that a study takes over from an earlier one.
struct WarmStart {
  std::vector<Event> events{};  ///< To apply to the study.
  int64_t taken = 0;            ///< Number of trials in them.
  int64_t outside = 0;          ///< Number of trials whose points are not in the study's space.
};

/// Takes over the complete and pruned trials of an earlier study with their reports, as finished
/// trials of this one, so that its sampler and pruner can use them. They get the next numbers, keep
/// their times, and are in addition to the requested trials. Their worker is the earlier study's
/// name and trial.
///
/// Parameters are matched by name and value: a trial is skipped if it has a value that this space
/// does not have, lacks an active parameter, or violates the constraints. Objectives and limits are
/// matched by metric, in either role; directions may differ. Pruned trials and reports are taken
/// over only if the first objectives have the same metric. Segments of a population's members are
/// skipped and not counted; trials that asha could still promote stay pruned.
///
/// Throws UsageError if a metric of this study is not in the earlier one.
WarmStart warm_start(const Study& study, const Study& earlier, const Pruner& pruner);

}  // namespace gallop::tune
