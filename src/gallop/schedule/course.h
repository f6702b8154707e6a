#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// The scheduled values of a run at each step: learning rate factor, momentum, ...
struct Course {
  /// Must have `samples_per_epoch`, `batch` and `batches_per_epoch`.
  RunLength length;
  std::vector<std::function<double(double progress)>> values;
};

/// The number of initial steps for which two runs have bit-identical values; at most the length of
/// the shorter one. 0 if their samples, batches or scheduled values differ.
int64_t common_steps(const Course& one, const Course& other);

/// Steps at which runs with a common prefix may diverge: numbers of completed steps at which a
/// value that was constant for at least `least` steps starts to change. Ascending, excluding the
/// first and last step.
std::vector<int64_t> turning_points(const Course& course, int64_t least);

}  // namespace gallop::schedule
