#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// A range of training steps that ran with one point.
struct Segment {
  int64_t first_step = 0, last_step = 0;  ///< `first_step` is exclusive, `last_step` inclusive.
  Point point{};
  std::vector<int64_t> trials{};  ///< The trials that trained it, in order.
};

/// The lineage of a trial's weights: the chain of trials from whose checkpoints it and its parents
/// started, oldest first, with consecutive trials of the same point merged into one segment. A
/// single run with this schedule trains as the trial did. A segment's last step is the trial's last
/// report, or its last_step if it has none.
std::vector<Segment> lineage(const Study& study, int64_t trial);

}  // namespace gallop::tune
