#include "gallop/parallel/divided_optimizer.h"

#include <exception>
#include <map>

#include <ATen/ops/empty_strided.h>

#include "gallop/parallel/shared_update.h"

namespace gallop::parallel {

NamedTensors on_meta(const NamedTensors& tensors) {
  NamedTensors all;
  for (const auto& [name, tensor] : tensors) {
    all.push_back(
        {name, at::empty_strided(tensor.sizes(), tensor.strides(),
                                 tensor.options().device(at::kMeta).requires_grad(false))});
  }
  return all;
}

at::Tensor DividedOptimizer::step(const at::Tensor& lr, const at::Tensor& grad_scale,
                                  const at::Tensor& found_inf,
                                  const optim::ScheduledOptions& scheduled) {
  inner_->step(lr, grad_scale, found_inf, scheduled);
  updated();
  return {};
}

void DividedOptimizer::use_averaged_weights(bool averaged) {
  // State that is kept in place of weights has another name.
  const std::vector<std::string> before = names_of(whole_->state());
  inner_->use_averaged_weights(averaged);
  whole_->use_averaged_weights(averaged);
  // If this process ends by an error, the others may not be there.
  if (std::uncaught_exceptions() > 0) return;
  exchanged(averaged, names_of(whole_->state()) != before);
}

std::vector<LogicalTensor> DividedOptimizer::logical_state() const {
  std::map<std::string, at::Tensor> local;
  for (const auto& [name, tensor] : inner_->state()) local.emplace(name, tensor);
  std::vector<LogicalTensor> all;
  for (const auto& [name, whole] : whole_->state()) {
    auto found = local.find(name);
    if (found == local.end()) found = local.find(name_here(name));
    // Of a parameter of which this process has nothing, an optimizer may keep nothing.
    all.push_back({.name = name,
                   .whole = whole,
                   .local = found != local.end() ? found->second : at::Tensor()});
    divide(all.back());
  }
  return all;
}

}  // namespace gallop::parallel
