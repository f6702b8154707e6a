#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/update.h"
#include "gallop/optim/gradients.h"
#include "gallop/optim/parameter_group.h"

// Only for sources of optim/: what every optimizer does with its kernel on the CPU.
namespace gallop::optim {

/// One update of all groups by a kernel::update(). `input` makes what the kernel takes of parameter
/// i of a group. Returns what Optimizer::step() does.
template <typename Input>
at::Tensor step_on_cpu(const std::vector<ParameterGroup>& groups, const SkipSignal& skip,
                       const Input& input) {
  if (skip.is_skipped()) return {};
  const float factor = skip.gradient_factor();
  std::vector<ParameterGroup> active;  // Holds what the kernel works on.
  std::vector<decltype(input(groups.front(), size_t{0}))> tensors;
  for (const ParameterGroup& group : groups) {
    active.push_back(with_gradients(group));
    for (size_t i = 0; i < active.back().parameters.size(); ++i) {
      tensors.push_back(input(active.back(), i));
      tensors.back().gradient_scale = factor;
    }
  }
  return norm_on_cpu(kernel::update(tensors));
}

}  // namespace gallop::optim
