#pragma once

#include <algorithm>
#include <vector>

#include "gallop/train/step.h"

namespace gallop::train {

/// The step of finders, which try things out: what a schedule would change stays as it is in the
/// recipe, and losses may jump.
inline StepConfig for_trials(StepConfig config) {
  config.scheduled.clear();
  config.spikes.reset();
  return config;
}

/// Of at least one number; of two in the middle the larger.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gallop::train
