#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/optim/optimizer_parameters.h"

// Only for sources of optim/.
namespace gallop::optim {

/// A step of an optimizer that consists of LibTorch's operators: nothing is read on the host, so it
/// can be recorded, and the step compiler joins its pointwise parts.
class TensorStep {
 public:
  /// Of the parameters that have a gradient now; the rest as Optimizer::step() takes it, the last
  /// of it if it varies.
  TensorStep(const OptimizerParameters& all, const at::Tensor& lr, const at::Tensor& grad_scale,
             const at::Tensor& found_inf, const at::Tensor& weight_decay);

  size_t size() const { return step_.parameters.size(); }
  /// Its number among all parameters of the optimizer.
  size_t index(size_t i) const { return static_cast<size_t>(step_.indices[i]); }
  const at::Tensor& parameter(size_t i) const { return step_.parameters[i]; }
  /// Divided by the loss scale, in the parameter's type.
  at::Tensor gradient(size_t i) const;
  /// The same in two: as it came, and what it is to be multiplied by, which may be undefined.
  const at::Tensor& raw_gradient(size_t i) const { return step_.gradients[i]; }
  const at::Tensor& gradient_scale() const { return scale_; }
  /// fp32, no dimensions.
  at::Tensor lr(size_t i) const;
  /// Before its factor; and what divides the gradients, which may be undefined.
  const at::Tensor& raw_lr() const { return step_.lr; }
  const at::Tensor& grad_scale() const { return step_.grad_scale; }
  double lr_factor(size_t i) const { return step_.lr_factors[i]; }
  double weight_decay(size_t i) const { return step_.weight_decays[i]; }
  /// The parameter after decoupled weight decay; itself where it has none.
  at::Tensor decayed(size_t i) const;

  /// Of a parameter or state; one that is skipped stays, whatever came out.
  void write(const at::Tensor& to, const at::Tensor& value) const;

 private:
  kernel::OptimizerStep step_;
  at::Tensor scale_, weight_decay_;
  std::optional<at::Tensor> found_inf_;
};

}  // namespace gallop::optim
