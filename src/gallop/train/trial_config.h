#pragma once

#include <algorithm>
#include <vector>

#include "gallop/train/step/config.h"

namespace gallop::train {

/// The step configuration of trials: scheduled parameters stay at the recipe's values, and loss
/// spikes are not detected.
inline StepConfig for_trials(StepConfig config) {
  config.scheduled.clear();
  config.spikes.reset();
  return config;
}

/// The median of at least one value; the larger of the two middle ones.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gallop::train
