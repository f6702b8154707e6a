#include "gallop/model/functional/global_avg_pool.h"

#include <ATen/ops/avg_pool2d.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/global_avg_pool.h"
#include "gallop/kernel/isa.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GlobalAvgPoolFunction : torch::autograd::Function<GlobalAvgPoolFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->saved_data["height"] = x.size(2);
    context->saved_data["width"] = x.size(3);
    return kernel::global_avg_pool(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("global_avg_pool");
    return {kernel::global_avg_pool_backward(gradients[0], context->saved_data["height"].toInt(),
                                             context->saved_data["width"].toInt())};
  }
};

}  // namespace

at::Tensor global_avg_pool(const at::Tensor& x) {
  if (kernel::kernels_enabled() && kernel::takes_global_avg_pool(x)) {
    return GlobalAvgPoolFunction::apply(x);
  }
  return at::avg_pool2d(x, {x.size(2), x.size(3)}).flatten(1);
}

}  // namespace gallop::model::functional
