#include "gallop/optim/tensor_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

namespace gallop::optim {

TensorStep::TensorStep(const OptimizerParameters& all, const at::Tensor& lr,
                       const at::Tensor& grad_scale, const at::Tensor& found_inf,
                       const at::Tensor& weight_decay)
    : step_{.lr = lr, .grad_scale = grad_scale, .found_inf = found_inf},
      weight_decay_(weight_decay) {
  all.put_into(step_, weight_decay);
  if (grad_scale.defined()) scale_ = 1 / grad_scale;
  if (found_inf.defined()) found_inf_ = found_inf.ne(0);
}

at::Tensor TensorStep::gradient(size_t i) const {
  const at::Tensor& gradient = step_.gradients[i];
  return step_.grad_scale.defined() ? gradient / step_.grad_scale : gradient;
}

at::Tensor TensorStep::lr(size_t i) const {
  const double factor = step_.lr_factors[i];
  return factor == 1 ? step_.lr : step_.lr * factor;
}

at::Tensor TensorStep::decayed(size_t i) const {
  const at::Tensor& p = step_.parameters[i];
  const double decay = step_.weight_decays[i];
  if (decay == 0) return p;
  if (decay == kernel::kScheduledDecay) return p * (1 - lr(i) * weight_decay_);
  return p * (1 - lr(i) * decay);
}

void TensorStep::write(const at::Tensor& to, const at::Tensor& value) const {
  to.copy_(found_inf_ ? at::where(*found_inf_, to, value) : value);
}

}  // namespace gallop::optim
