#include "gallop/train/prove/probes.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/tensor/recording.h"

namespace gallop::train {

at::Tensor ProbedModel::output(size_t call, at::IntArrayRef input_sizes) const {
  const auto kept = kept_.find({call, input_sizes.vec()});
  return kept == kept_.end() ? at::Tensor() : kept->second.output.clone();
}

NamedTensors ProbedModel::activations(size_t call, at::IntArrayRef input_sizes) const {
  const auto kept = kept_.find({call, input_sizes.vec()});
  NamedTensors copies;
  if (kept == kept_.end()) return copies;
  for (const auto& [name, tensor] : kept->second.activations) {
    copies.push_back({name, tensor.clone()});
  }
  return copies;
}

model::Output ProbedModel::forward_to_head(const at::Tensor& input) {
  model::Output output = model_.forward_to_head(input);
  keep(input, output.x);
  return output;
}

model::Output ProbedModel::forward_to_head(const NamedTensors& batch) {
  model::Output output = model_.forward_to_head(batch);
  keep(batch.front().tensor, output.x);
  return output;
}

namespace {

// A recorded step writes to the same memory whenever it is replayed.
void copy_into(at::Tensor& kept, const at::Tensor& tensor) {
  if (!kept.defined()) {
    const Unrecorded aside;
    kept =
        at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).device(tensor.device()));
  }
  kept.copy_(tensor.detach());
}

}  // namespace

void ProbedModel::keep(const at::Tensor& input, const at::Tensor& output) {
  const NamedTensors activations = blocks_ ? blocks_->take(input.size(0)) : NamedTensors();
  if (!at::GradMode::is_enabled()) return;
  const at::NoGradGuard no_grad;
  Pass& pass = kept_[{calls_++, input.sizes().vec()}];
  copy_into(pass.output, output);
  for (size_t i = 0; i < activations.size(); ++i) {
    if (i == pass.activations.size()) pass.activations.push_back({activations[i].name, {}});
    copy_into(pass.activations[i].tensor, activations[i].tensor);
  }
}

ProbedOptimizer::ProbedOptimizer(optim::Optimizer& optimizer, const NamedTensors& parameters,
                                 ProbedModel& model)
    : optimizer_(optimizer),
      parameters_(parameters),
      model_(model),
      divisor_(
          at::ones({}, at::TensorOptions(at::kFloat).device(parameters.front().tensor.device()))),
      has_gradient_(parameters.size()) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters) kept_.push_back(at::zeros_like(tensor.detach()));
}

at::Tensor ProbedOptimizer::step(const at::Tensor& lr, const at::Tensor& grad_scale,
                                 const at::Tensor& found_inf,
                                 const optim::ScheduledOptions& scheduled) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    has_gradient_[i] = gradient.defined();
    if (gradient.defined()) kept_[i].copy_(gradient);
  }
  if (grad_scale.defined()) divisor_.copy_(grad_scale);
  model_.restart();
  return optimizer_.step(lr, grad_scale, found_inf, scheduled);
}

NamedTensors ProbedOptimizer::gradients() const {
  const at::NoGradGuard no_grad;
  NamedTensors gradients;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    gradients.push_back({parameters_[i].name,
                         has_gradient_[i] ? kept_[i].to(at::kDouble) / divisor_ : at::Tensor()});
  }
  return gradients;
}

}  // namespace gallop::train
