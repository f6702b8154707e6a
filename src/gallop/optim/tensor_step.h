#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/optim/optimizer_parameters.h"

// Internal to optim/.
namespace gallop::optim {

/// An optimizer step of LibTorch operators: nothing is read on the host, so that it can be traced,
/// and the step compiler fuses its pointwise operations.
class TensorStep {
 public:
  /// The step of the parameters that have a gradient; other arguments as in Optimizer::step(), with
  /// the weight decay if it is scheduled.
  TensorStep(const OptimizerParameters& all, const at::Tensor& lr, const at::Tensor& grad_scale,
             const at::Tensor& found_inf, const at::Tensor& weight_decay);

  size_t size() const { return step_.parameters.size(); }
  /// The index among all parameters of the optimizer.
  size_t index(size_t i) const { return static_cast<size_t>(step_.indices[i]); }
  const at::Tensor& parameter(size_t i) const { return step_.parameters[i]; }
  /// The unscaled gradient, in the parameter's type.
  at::Tensor gradient(size_t i) const;
  /// The gradient as is, and below the factor to multiply it by, which may be undefined.
  const at::Tensor& raw_gradient(size_t i) const { return step_.gradients[i]; }
  const at::Tensor& gradient_scale() const { return scale_; }
  /// The learning rate: fp32 scalar.
  at::Tensor lr(size_t i) const;
  /// The learning rate before the parameter's factor; and the gradients' divisor, which may be
  /// undefined.
  const at::Tensor& raw_lr() const { return step_.lr; }
  const at::Tensor& grad_scale() const { return step_.grad_scale; }
  double lr_factor(size_t i) const { return step_.lr_factors[i]; }
  double weight_decay(size_t i) const { return step_.weight_decays[i]; }
  /// The parameter after decoupled weight decay, or itself without weight decay.
  at::Tensor decayed(size_t i) const;

  /// Writes a parameter or state, unless the step is skipped.
  void write(const at::Tensor& to, const at::Tensor& value) const;

 private:
  kernel::OptimizerStep step_;
  at::Tensor scale_, weight_decay_;
  std::optional<at::Tensor> found_inf_;
};

}  // namespace gallop::optim
