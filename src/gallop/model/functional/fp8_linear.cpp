// Sizes: M rows of x, K inputs, N outputs.
#include "gallop/model/functional/fp8_linear.h"

#include <limits>

#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kMultiple = 16;
// The lower limit of a scale, so that its reciprocal is finite, as in torchao.
constexpr double kLeast = 1e-12;

double largest_of(at::ScalarType format) {
  return format == at::kFloat8_e4m3fn
             ? static_cast<float>(std::numeric_limits<c10::Float8_e4m3fn>::max())
             : static_cast<float>(std::numeric_limits<c10::Float8_e5m2>::max());
}

// A quantized tensor: its value is numbers * scale.
struct Fp8 {
  at::Tensor numbers, scale;
};

// The casts of LibTorch 2.11 do not saturate, but no quotient exceeds the format's maximum by more
// than the rounding error of fp32.
Fp8 to_fp8(const at::Tensor& tensor, at::ScalarType format) {
  const at::Tensor largest =
      at::linalg_vector_norm(tensor, std::numeric_limits<double>::infinity(), std::nullopt,
                             /*keepdim=*/false, at::kFloat);
  const at::Tensor scale = largest.clamp_min(kLeast).div(largest_of(format));
  return {.numbers = tensor.to(at::kFloat).div(scale).to(format).contiguous(), .scale = scale};
}

at::Tensor as_matrix(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

// The transpose of a matrix in memory, with rows zero-padded to a multiple of 16, as required of
// the inner dimension of a GEMM.
Fp8 transposed(const Fp8& matrix) {
  const at::Tensor& numbers = matrix.numbers;
  const int64_t rows = numbers.size(0);
  const int64_t filled = (rows + kMultiple - 1) / kMultiple * kMultiple;
  if (filled == rows) return {.numbers = numbers.t().contiguous(), .scale = matrix.scale};
  const at::Tensor all = at::zeros({numbers.size(1), filled}, numbers.options());
  all.narrow(1, 0, rows).copy_(numbers.t());
  return {.numbers = all, .scale = matrix.scale};
}

// a b^T of row-major matrices, as required by GPUs of compute capability 8.9 and 9.0. With `fast`,
// for the forward pass only, sums may be accumulated in fewer bits.
at::Tensor product(const Fp8& a, const Fp8& b, const std::optional<at::Tensor>& bias,
                   at::ScalarType format, bool fast) {
  // On CPUs without fp8 GEMMs, LibTorch calls other operators, which autocast would intercept.
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  return at::_scaled_mm(a.numbers, b.numbers.t(), a.scale, b.scale, bias, /*scale_result=*/{},
                        format, fast);
}

struct Fp8LinearFunction : torch::autograd::Function<Fp8LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const Fp8 x8 = to_fp8(as_matrix(x), at::kFloat8_e4m3fn);
    const Fp8 weight8 = to_fp8(weight, at::kFloat8_e4m3fn);
    context->save_for_backward({x8.numbers, x8.scale, weight8.numbers, weight8.scale});
    context->saved_data["x"] = x.scalar_type();
    context->saved_data["weight"] = weight.scalar_type();
    if (bias) context->saved_data["bias"] = bias->scalar_type();
    std::optional<at::Tensor> added;
    if (bias) added = bias->to(at::kBFloat16);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return product(x8, weight8, added, at::kBFloat16, /*fast=*/true).reshape(sizes);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("fp8 linear");
    const auto saved = context->get_saved_variables();
    const Fp8 x8{.numbers = saved[0], .scale = saved[1]};
    const Fp8 weight8{.numbers = saved[2], .scale = saved[3]};
    const auto& formats = context->saved_data;
    const at::Tensor dy = as_matrix(gradients[0]);
    const Fp8 dy8 = to_fp8(dy, at::kFloat8_e5m2);
    at::Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0)) {
      std::vector<int64_t> sizes = gradients[0].sizes().vec();
      sizes.back() = weight8.numbers.size(1);
      dx = product(dy8, transposed(weight8), {}, formats.at("x").toScalarType(), /*fast=*/false)
               .reshape(sizes);
    }
    if (context->needs_input_grad(1)) {
      dweight = product(transposed(dy8), transposed(x8), {}, formats.at("weight").toScalarType(),
                        /*fast=*/false);
    }
    if (formats.count("bias") > 0 && context->needs_input_grad(2)) {
      dbias = dy.sum(0, /*keepdim=*/false, formats.at("bias").toScalarType());
    }
    return {dx, dweight, dbias};
  }
};

}  // namespace

bool takes_fp8_linear(at::IntArrayRef weight_sizes) {
  return weight_sizes.size() == 2 && weight_sizes[0] % kMultiple == 0 &&
         weight_sizes[1] % kMultiple == 0;
}

at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!takes_fp8_linear(weight.sizes()) || x.dim() == 0 || x.size(-1) != weight.size(1) ||
      x.numel() == 0) {
    throw InternalError("fp8_linear: unsupported tensors");
  }
  return Fp8LinearFunction::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

}  // namespace gallop::model::functional
