#include "gallop/optim/tensor_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

namespace gallop::optim {

TensorStep::TensorStep(const OptimizerParameters& all, const at::Tensor& lr,
                       const at::Tensor& grad_scale, const at::Tensor& found_inf)
    : step_{.lr = lr, .divisor = grad_scale, .skip = found_inf} {
  all.put_into(step_);
  if (grad_scale.defined()) scale_ = 1 / grad_scale;
  if (found_inf.defined()) skip_ = found_inf.ne(0);
}

at::Tensor TensorStep::gradient(size_t i) const {
  const at::Tensor& gradient = step_.gradients[i];
  return step_.divisor.defined() ? gradient / step_.divisor : gradient;
}

at::Tensor TensorStep::lr(size_t i) const {
  const double factor = step_.lr_factors[i];
  return factor == 1 ? step_.lr : step_.lr * factor;
}

void TensorStep::write(const at::Tensor& to, const at::Tensor& value) const {
  to.copy_(skip_ ? at::where(*skip_, to, value) : value);
}

}  // namespace gallop::optim
