#pragma once

#include "gallop/train/step.h"

namespace gallop::train {

/// The step of finders, which try things out: what a schedule would change stays as it is in the
/// recipe, and losses may jump.
inline StepConfig for_trials(StepConfig config) {
  config.varied.clear();
  config.spikes.reset();
  return config;
}

}  // namespace gallop::train
