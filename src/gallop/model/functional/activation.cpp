#include "gallop/model/functional/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/kernel/activation.h"
#include "gallop/kernel/isa.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using kernel::Activation;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor by_library(Activation kind, const at::Tensor& x) {
  switch (kind) {
    case Activation::kGelu: return at::gelu(x);
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kSilu: return at::silu(x);
    case Activation::kRelu: return at::relu(x);
  }
  throw InternalError("an activation without an operator");
}

struct ActivationFunction : torch::autograd::Function<ActivationFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias, Activation kind) {
    auto y = kernel::activation(kind, x, bias.value_or(at::Tensor()));
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    // ReLU's output is positive where its input was, and the next layer saves the output anyway.
    const bool relu = kind == Activation::kRelu;
    context->save_for_backward({relu ? y : x, relu ? at::Tensor() : bias.value_or(at::Tensor())});
    if (bias) context->saved_data["bias"] = static_cast<int64_t>(bias->scalar_type());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("activation");
    const auto saved = context->get_saved_variables();
    const auto bias = context->saved_data.find("bias");
    std::optional<at::ScalarType> bias_format;
    if (bias != context->saved_data.end() && context->needs_input_grad(1)) {
      bias_format = static_cast<at::ScalarType>(bias->second.toInt());
    }
    auto result =
        kernel::activation_backward(static_cast<Activation>(context->saved_data["kind"].toInt()),
                                    gradients[0].contiguous(), saved[0], saved[1], bias_format);
    return {std::move(result.x), std::move(result.bias), {}};
  }
};

}  // namespace

at::Tensor activation(Activation kind, const at::Tensor& x, const at::Tensor& bias) {
  if (kernel::kernels_enabled()) {
    const auto optional = bias.defined() ? std::optional(bias) : std::nullopt;
    if (kernel::takes_activation(x, bias)) return ActivationFunction::apply(x, optional, kind);
    // The kernel takes channels_last images in the order of their memory.
    if (x.dim() == 4 && !bias.defined()) {
      const auto x_NHWC = x.permute({0, 2, 3, 1});
      if (kernel::takes_activation(x_NHWC, bias)) {
        return ActivationFunction::apply(x_NHWC, optional, kind).permute({0, 3, 1, 2});
      }
    }
  }
  return by_library(kind, bias.defined() ? x + bias.to(x.scalar_type()) : x);
}

}  // namespace gallop::model::functional
