#pragma once

#include <string>

#include "gallop/optim/optimizer.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// Throws UsageError if the optimizer does not support the config: SAM computes gradients at other
/// weights, and so needs an optimizer whose average does not depend on gradients at its own
/// weights, and weights that are not bf16.
void check_optimizer(const StepConfig& config, const optim::Optimizer& optimizer);

/// Throws UsageError if the config needs gradients of whole parameters, which are divided among
/// processes by `option`, such as "parallel.name=zero-1".
void check_division(const StepConfig& config, const std::string& option);

/// Throws UsageError if a step cannot be done with the config's loss, or if its strategy does not
/// support the config or the optimizer.
void check_step(const StepConfig& config, const optim::Optimizer& optimizer);

}  // namespace gallop::train
