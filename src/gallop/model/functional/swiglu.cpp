#include "gallop/model/functional/swiglu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/swiglu.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return kernel::swiglu(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("swiglu");
    return {kernel::swiglu_backward(gradients[0].contiguous(), context->get_saved_variables()[0])};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& x) {
  if (kernel::kernels_enabled() && kernel::takes_swiglu(x)) return SwigluFunction::apply(x);
  const auto parts = x.chunk(2, -1);
  return at::silu(parts[0]) * parts[1];
}

}  // namespace gallop::model::functional
