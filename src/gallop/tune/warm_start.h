#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/pruner.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// What a study takes over from an earlier one.
struct WarmStart {
  std::vector<Event> events{};  ///< That the study is to be told.
  int64_t taken = 0;            ///< Trials that are in them.
  int64_t outside = 0;          ///< Those whose points are not in the study's space.
};

/// Takes over the trials of an earlier study that are complete or pruned, with what they reported,
/// as finished trials of this one, so that its sampler and its pruner know them. They are numbered
/// from the next number on, keep their times, and are more than the trials that were wanted. Their
/// workers read as the earlier study's name and trial.
///
/// Parameters are matched by name and value: a trial is left out which has a value that this space
/// has not, or lacks one that it has, or whose point its constraints do not allow. Objectives and
/// limits are matched by metric, whichever of both they were; directions may differ. Pruned trials
/// and reports are only taken where the first objectives have the same metric. Segments of a
/// population's members are left out, and not counted; what asha might have promoted stays pruned.
///
/// Throws UsageError where a metric of this study was none of the earlier one's.
WarmStart warm_start(const Study& study, const Study& earlier, const Pruner& pruner);

}  // namespace gallop::tune
