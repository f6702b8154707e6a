#include "gallop/model/functional/sum_before_norm.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/layer_norm.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The order in which the kernel of layer norms adds up the gradient of the bias is its own, so that
// this is a layer norm whose y has no gradient.
struct SumFunction : torch::autograd::Function<SumFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& residual, const at::Tensor& bias) {
    const at::Tensor weight = at::ones({x.size(-1)}, bias.options().requires_grad(false));
    const auto result =
        kernel::layer_norm(x, residual, weight, {}, {.rms = true, .residual_bias = bias});
    context->save_for_backward({result.sum, result.mean, result.inverse, weight});
    context->saved_data["x"] = static_cast<int64_t>(x.scalar_type());
    context->saved_data["residual"] = static_cast<int64_t>(residual.scalar_type());
    return result.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("sum_before_norm");
    const auto format_of = [&](const char* name) {
      return static_cast<at::ScalarType>(context->saved_data[name].toInt());
    };
    const auto saved = context->get_saved_variables();
    const kernel::LayerNormResult result{
        .y = {}, .sum = saved[0], .mean = saved[1], .inverse = saved[2]};
    const auto found = kernel::layer_norm_backward(
        at::zeros_like(result.sum), gradients[0].contiguous(), result, saved[3], /*rms=*/true,
        /*narrowed=*/format_of("x") != format_of("residual"), /*residual_bias=*/true);
    const auto sum_in = [&](at::ScalarType format) {
      return format == found.sum.scalar_type() ? found.sum : found.sum_narrowed;
    };
    return {sum_in(format_of("x")), sum_in(format_of("residual")), found.residual_bias};
  }
};

}  // namespace

at::Tensor sum_before_norm(const Summands& in) {
  if (!in.residual.defined() || !in.bias.defined() || !kernel::kernels_enabled()) return sum_of(in);
  const at::Tensor weight = in.bias.detach();  // Any row of this size.
  if (!kernel::takes_layer_norm(in.x, in.residual, weight, {}, at::kFloat, in.bias)) {
    return sum_of(in);
  }
  return SumFunction::apply(in.x, in.residual, in.bias);
}

}  // namespace gallop::model::functional
