#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Steps of a training that ran with one point.
struct Segment {
  int64_t first_step = 0, last_step = 0;  ///< After the first, up to and including the last.
  Point point{};
  std::vector<int64_t> trials{};  ///< The trials that trained it, in order.
};

/// The lineage of a trial's weights: the trials from whose checkpoints it and its parents began,
/// the first one at the front, with those of the same point as one segment. A single run that
/// follows it trains as the trial did. A segment's last step is the trial's last report, or its
/// last_step if it has none.
std::vector<Segment> lineage(const Study& study, int64_t trial);

}  // namespace gallop::tune
