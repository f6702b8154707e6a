#include "gallop/optim/tensor_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

namespace gallop::optim {

TensorStep::TensorStep(const kernel::OptimizerStep& step) : step_(step) {
  if (step.divisor.defined()) scale_ = 1 / step.divisor;
  if (step.skip.defined()) skip_ = step.skip.ne(0);
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
