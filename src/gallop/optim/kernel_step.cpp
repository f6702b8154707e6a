#include "gallop/optim/kernel_step.h"

namespace gallop::optim {

namespace {

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

KernelStep kernel_step(const std::vector<ParameterGroup>& groups, const at::Tensor& steps,
                       const at::Tensor& lr, const SkipSignal& skip) {
  KernelStep all{.step = {.steps = steps,
                          .lr = lr,
                          .divisor = skip.grad_scale().value_or(at::Tensor()),
                          .skip = skip.found_inf().value_or(at::Tensor())},
                 .states = {}};
  all.states.resize(groups.front().states.size());
  for (const ParameterGroup& group : groups) {
    const ParameterGroup active = with_gradients(group);
    append(all.step.parameters, active.parameters);
    append(all.step.gradients, active.gradients);
    all.step.weight_decays.resize(all.step.parameters.size(), group.weight_decay);
    all.step.indices.insert(all.step.indices.end(), active.indices.begin(), active.indices.end());
    for (size_t kind = 0; kind < all.states.size(); ++kind) {
      append(all.states[kind], active.states[kind]);
    }
  }
  return all;
}

}  // namespace gallop::optim
