#include "gallop/model/functional/linear.h"

#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/linear.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using kernel::Activation;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, bool relu,
                            at::ScalarType output) {
    auto y = kernel::linear(x, weight, bias.value_or(at::Tensor()), relu, output);
    context->save_for_backward({x, weight, relu ? y : at::Tensor()});
    context->saved_data["bias"] = bias.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("linear");
    const auto saved = context->get_saved_variables();
    const bool has_bias = context->saved_data["bias"].toBool();
    auto result = kernel::linear_backward(gradients[0].contiguous(), saved[2], saved[0], saved[1],
                                          {.x = context->needs_input_grad(0),
                                           .weight = context->needs_input_grad(1),
                                           .bias = has_bias && context->needs_input_grad(2)});
    return {std::move(result.x), std::move(result.weight), std::move(result.bias), {}, {}};
  }
};

at::Tensor by_library(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      std::optional<Activation> activation) {
  if (!activation) return at::linear(x, weight, bias);
  // LibTorch's CPU GEMM adds a bias in separate passes; on other devices it is free. For small
  // outputs that does not matter, and the kernel's reduction for the bias gradient costs more.
  constexpr int64_t kFew = 100'000;
  if (!x.is_cpu() || x.numel() < kFew) {
    return functional::activation(*activation, at::linear(x, weight, bias));
  }
  return functional::activation(*activation, at::linear(x, weight), bias);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  std::optional<Activation> activation) {
  const auto output = product_format(x);
  if (!kernel::kernels_enabled() || !kernel::takes_linear(x, weight, bias, output)) {
    return by_library(x, weight, bias, activation);
  }
  const bool relu = activation == Activation::kRelu;
  auto y = LinearFunction::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt,
                                 relu, output);
  return activation && !relu ? functional::activation(*activation, y) : y;
}

}  // namespace gallop::model::functional
