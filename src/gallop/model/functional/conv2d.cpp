#include "gallop/model/functional/conv2d.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/conv2d.h"
#include "gallop/kernel/conv2d_wgrad.h"
#include "gallop/kernel/isa.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernel::Conv2dWindow window_of(const at::Tensor& weight, int64_t stride, int64_t padding) {
  return {.height = weight.size(2), .width = weight.size(3), .stride = stride, .padding = padding};
}

struct Conv2dFunction : torch::autograd::Function<Conv2dFunction> {
  // `x` is bf16, and the convolution uses `weight` and `bias` converted to bf16.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, int64_t stride,
                            int64_t padding) {
    const auto narrow = weight.to(at::kBFloat16);
    const auto narrow_bias = bias ? bias->to(at::kBFloat16) : at::Tensor();
    context->save_for_backward({x});
    context->saved_data["weight"] = narrow;
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    const auto window = window_of(narrow, stride, padding);
    if (bias) context->saved_data["bias"] = static_cast<int64_t>(bias->scalar_type());
    return kernel::takes_conv2d(x, narrow, window)
               ? kernel::conv2d(x, narrow, narrow_bias, window)
               : at::conv2d(x, narrow, bias ? std::optional(narrow_bias) : std::nullopt, stride,
                            padding);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("conv2d");
    const auto x = context->get_saved_variables()[0];
    const auto weight = context->saved_data["weight"].toTensor();
    const int64_t stride = context->saved_data["stride"].toInt(),
                  padding = context->saved_data["padding"].toInt();
    const auto dy = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const auto window = window_of(weight, stride, padding);
    at::Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0) &&
        kernel::takes_conv2d_dgrad(dy, weight, x.size(2), x.size(3), window)) {
      dx = kernel::conv2d_dgrad(dy, weight, x.size(2), x.size(3), window);
    } else if (context->needs_input_grad(0)) {
      dx = std::get<0>(at::convolution_backward(
          dy, x, weight, at::OptionalIntArrayRef(), {stride, stride}, {padding, padding}, {1, 1},
          /*transposed=*/false, {0, 0}, /*groups=*/1, {true, false, false}));
    }
    if (context->needs_input_grad(1)) {
      dweight = kernel::conv2d_wgrad(dy, x, window);
    }
    const auto bias = context->saved_data.find("bias");
    if (bias != context->saved_data.end() && context->needs_input_grad(2)) {
      const auto pixels = dy.permute({0, 2, 3, 1}).flatten(0, 2);
      dbias =
          at::sum(pixels, 0, /*keepdim=*/false, static_cast<at::ScalarType>(bias->second.toInt()));
    }
    return {dx, dweight, dbias, {}, {}};
  }
};

bool is_fp32_or_bf16(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
}

// Whether oneDNN overruns its scratch memory in the weight gradient: it allocates for the actual
// channels but assumes a full vector of channels (oneDNN issue 6035, not fixed in LibTorch
// 2.11).
bool overruns_scratch(const at::Tensor& x, const at::Tensor& weight, int64_t stride,
                      int64_t padding) {
  constexpr int64_t kMostChannelsOfVector = 16;
  return x.is_cpu() && x.dim() == 4 && x.size(1) < kMostChannelsOfVector && stride > 1 &&
         padding == 0 && weight.size(2) == 1 && weight.size(3) == 1;
}

// The pixels that a 1 x 1 window reads.
at::Tensor seen_pixels(const at::Tensor& x, int64_t stride) {
  const auto rows = at::slice(x, 2, 0, std::nullopt, stride);
  return at::slice(rows, 3, 0, std::nullopt, stride).contiguous(x.suggest_memory_format());
}

}  // namespace

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  int64_t stride, int64_t padding) {
  if (kernel::kernels_enabled() && x.is_cpu() && x.dim() == 4 && x.size(1) == weight.size(1) &&
      weight.is_cpu() && is_fp32_or_bf16(weight) && weight.requires_grad() &&
      at::GradMode::is_enabled() && (!bias.defined() || is_fp32_or_bf16(bias)) &&
      is_bf16_autocast()) {
    const auto narrow =
        x.to(at::kBFloat16, /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::ChannelsLast);
    if (kernel::takes_conv2d_wgrad(narrow, weight.size(0), window_of(weight, stride, padding))) {
      const auto optional_bias = bias.defined() ? std::optional(bias) : std::nullopt;
      return Conv2dFunction::apply(narrow, weight, optional_bias, stride, padding);
    }
  }
  if (overruns_scratch(x, weight, stride, padding)) {
    return at::conv2d(seen_pixels(x, stride), weight, bias);
  }
  return at::conv2d(x, weight, bias, stride, padding);
}

}  // namespace gallop::model::functional
