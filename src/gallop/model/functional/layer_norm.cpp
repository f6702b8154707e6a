#include "gallop/model/functional/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/layer_norm.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

at::Tensor like(const at::Tensor& gradient, at::ScalarType format) {
  return gradient.defined() ? gradient.to(format) : gradient;
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  // Returns y and, if there is a residual, the sum.
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const OptionalTensor& residual,
                               const OptionalTensor& bias, const OptionalTensor& residual_bias,
                               kernel::LayerNormOptions options) {
    options.residual_bias = residual_bias.value_or(at::Tensor());
    auto result = kernel::layer_norm(x, residual.value_or(at::Tensor()), weight,
                                     bias.value_or(at::Tensor()), options);
    context->set_materialize_grads(false);
    context->save_for_backward({result.sum, result.mean, result.inverse, weight});
    auto& data = context->saved_data;
    data["rms"] = options.rms;
    data["bias"] = bias.has_value();
    data["residual_bias"] = residual_bias.has_value();
    data["x"] = static_cast<int64_t>(x.scalar_type());
    if (!residual) return {result.y};
    data["residual"] = static_cast<int64_t>(residual->scalar_type());
    return {result.y, result.sum};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("layer_norm");
    auto& data = context->saved_data;
    const bool has_residual = data.find("residual") != data.end(), has_bias = data["bias"].toBool();
    const auto x_format = static_cast<at::ScalarType>(data["x"].toInt());
    const auto residual_format =
        has_residual ? static_cast<at::ScalarType>(data["residual"].toInt()) : x_format;
    const at::Tensor& dy = gradients[0];
    const at::Tensor dsum = has_residual ? gradients[1] : at::Tensor();
    // Indices of the arguments with gradients of their own; undefined tensors are not counted in
    // needs_input_grad().
    const bool wants_residual_bias =
        data["residual_bias"].toBool() && context->needs_input_grad(has_bias ? 4 : 3);
    if (!dy.defined()) {
      const bool sums = wants_residual_bias && dsum.defined();
      return {like(dsum, x_format),
              {},
              like(dsum, residual_format),
              {},
              sums ? dsum.to(at::kFloat).flatten(0, -2).sum(0) : at::Tensor(),
              {}};
    }

    const auto saved = context->get_saved_variables();
    const kernel::LayerNormResult result{
        .y = {}, .sum = saved[0], .mean = saved[1], .inverse = saved[2]};
    // The gradient of the narrower input, if needed, is written together with the wider one.
    const bool narrowed =
        x_format != residual_format && context->needs_input_grad(x_format == at::kFloat ? 2 : 0);
    auto found = kernel::layer_norm_backward(
        dy.contiguous(), dsum.defined() ? dsum.contiguous() : dsum, result, saved[3],
        data["rms"].toBool(), narrowed, wants_residual_bias);
    const auto sum_in = [&](at::ScalarType format) {
      return format == found.sum.scalar_type() ? found.sum : found.sum_narrowed;
    };
    return {sum_in(x_format),
            found.weight,
            has_residual ? sum_in(residual_format) : at::Tensor(),
            has_bias ? found.bias : at::Tensor(),
            found.residual_bias,
            {}};
  }
};

at::ScalarType output_format(const at::Tensor& x, const at::Tensor& residual) {
  if (is_bf16_autocast()) return at::kBFloat16;
  return residual.defined() ? c10::promoteTypes(x.scalar_type(), residual.scalar_type())
                            : x.scalar_type();
}

}  // namespace

at::Tensor sum_of(const Summands& in) {
  if (!in.residual.defined()) return in.x;
  if (!in.bias.defined()) return in.x + in.residual;
  return in.x + (in.residual + in.bias.to(in.residual.scalar_type()));
}

std::vector<at::Tensor> tensors_of(const Summands& in) {
  if (!in.residual.defined()) return {in.x};
  return {in.x, in.residual};
}

NormedSum layer_norm(const Summands& in, const at::Tensor& weight, const at::Tensor& bias,
                     double eps, bool rms) {
  const auto format = output_format(in.x, in.residual);
  if (!kernel::kernels_enabled() ||
      !kernel::takes_layer_norm(in.x, in.residual, weight, bias, format, in.bias)) {
    const auto sum = sum_of(in);
    const int64_t width = weight.size(0);
    return {.y = rms ? at::rms_norm(sum, width, weight, eps)
                     : at::layer_norm(sum, width, weight, bias, eps),
            .sum = sum};
  }
  const auto outputs = LayerNormFunction::apply(
      in.x, weight, optional(in.residual), optional(bias), optional(in.bias),
      kernel::LayerNormOptions{.eps = eps, .rms = rms, .output = format, .residual_bias = {}});
  return {.y = outputs[0], .sum = in.residual.defined() ? outputs[1] : in.x};
}

}  // namespace gallop::model::functional
