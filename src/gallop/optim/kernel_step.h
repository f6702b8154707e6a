#pragma once

#include <vector>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/optim/parameter_group.h"

// Only for sources of optim/: what every optimizer does with its kernel.
namespace gallop::optim {

/// What a kernel takes of the parameters of all groups that have a gradient.
struct KernelStep {
  kernel::OptimizerStep step;
  std::vector<std::vector<at::Tensor>> states;  ///< One list for each kind of state.
};

KernelStep kernel_step(const std::vector<ParameterGroup>& groups, const at::Tensor& steps,
                       const at::Tensor& lr, const SkipSignal& skip);

}  // namespace gallop::optim
