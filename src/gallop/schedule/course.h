#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// What changes along a run from step to step: the factor of its learning rate, its momentum, ...
struct Course {
  /// With `samples_per_epoch`, `batch` and `batches_per_epoch`.
  RunLength length;
  std::vector<std::function<double(double progress)>> values;
};

/// How many steps from the beginning two runs take with the same values, each to the last bit; at
/// most as many as the shorter one has. 0 where one has other samples, batches or values than the
/// other.
int64_t common_steps(const Course& one, const Course& other);

/// Where runs that began alike may part: the steps that are done when values that have stayed the
/// same for at least `least` steps begin to change. Rising, between the first step and the last.
std::vector<int64_t> turning_points(const Course& course, int64_t least);

}  // namespace gallop::schedule
