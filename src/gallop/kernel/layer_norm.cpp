#include "gallop/kernel/layer_norm.h"

#include <optional>
#include <tuple>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/layer_norm.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

bool is_row(const at::Tensor& tensor, const at::Tensor& x) {
  return is_plain(tensor) && tensor.scalar_type() == at::kFloat && tensor.dim() == 1 &&
         tensor.size(0) == x.size(-1);
}

AnyArray array_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {.data = nullptr, .bf16 = false};
  return {.data = tensor.data_ptr(), .bf16 = tensor.scalar_type() == at::kBFloat16};
}

AnyArray from(const AnyArray& array, int64_t offset) {
  if (array.data == nullptr) return array;
  return {.data = static_cast<char*>(array.data) + offset * (array.bf16 ? 2 : 4),
          .bf16 = array.bf16};
}

LayerNormRows part(LayerNormRows rows, int64_t begin, int64_t end) {
  const int64_t offset = begin * rows.columns;
  rows.x = from(rows.x, offset);
  rows.residual = from(rows.residual, offset);
  rows.sum = from(rows.sum, offset);
  rows.y = from(rows.y, offset);
  rows.mean += begin;
  rows.inverse += begin;
  rows.rows = end - begin;
  return rows;
}

LayerNormGradientRows part(LayerNormGradientRows rows, int64_t begin, int64_t end, float* sums) {
  const int64_t offset = begin * rows.columns;
  rows.dy = from(rows.dy, offset);
  rows.dsum = from(rows.dsum, offset);
  rows.sum = from(rows.sum, offset);
  rows.dx = from(rows.dx, offset);
  if (rows.narrowed != nullptr) rows.narrowed += offset;
  rows.mean += begin;
  rows.inverse += begin;
  rows.sums = sums;
  rows.rows = end - begin;
  return rows;
}

}  // namespace

bool takes_layer_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                      const at::Tensor& bias, at::ScalarType output,
                      const at::Tensor& residual_bias) {
  return is_plain(x) && x.dim() > 0 &&
         (!residual_bias.defined() || (residual.defined() && is_row(residual_bias, x))) &&
         (!residual.defined() || (is_plain(residual) && residual.sizes() == x.sizes())) &&
         is_row(weight, x) && (!bias.defined() || is_row(bias, x)) &&
         (output == at::kFloat || output == at::kBFloat16);
}

namespace {

LayerNormResult forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        const at::Tensor& bias, const LayerNormOptions& options) {
  if (!takes_layer_norm(x, residual, weight, bias, options.output, options.residual_bias)) {
    throw InternalError("layer_norm: an unsupported tensor");
  }
  const bool swap = residual.defined() && residual.scalar_type() == at::kFloat;
  const at::Tensor &wide = swap ? residual : x, &other = swap ? x : residual;
  const auto [rows, columns] = rows_and_columns(x);
  const auto fp32 = x.options().dtype(at::kFloat);
  LayerNormResult result{.y = at::empty(x.sizes(), x.options().dtype(options.output)),
                         .sum = residual.defined() ? at::empty_like(wide) : x,
                         .mean = at::empty({rows}, fp32),
                         .inverse = at::empty({rows}, fp32)};
  const LayerNormRows all{.x = array_of(wide),
                          .residual = array_of(other),
                          .sum = array_of(result.sum),
                          .y = array_of(result.y),
                          .shift = data_of<const float>(options.residual_bias),
                          .weight = weight.const_data_ptr<float>(),
                          .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                          .mean = result.mean.mutable_data_ptr<float>(),
                          .inverse = result.inverse.mutable_data_ptr<float>(),
                          .rows = rows,
                          .columns = columns,
                          .eps = static_cast<float>(options.eps),
                          .rms = options.rms};
  at::parallel_for(0, rows, rows_of_grain(columns), [&](int64_t begin, int64_t end) {
    best_kernels<LayerNormKernels>().forward(part(all, begin, end));
  });
  return result;
}

LayerNormGradients backward(const at::Tensor& dy, const at::Tensor& dsum,
                            const LayerNormResult& saved, const at::Tensor& weight, bool rms,
                            bool narrowed, bool residual_bias) {
  const at::Tensor& sum = saved.sum;
  if (!takes_layer_norm(sum, dy, weight, {}, at::kFloat) ||
      (dsum.defined() && (!is_plain(dsum) || dsum.scalar_type() != sum.scalar_type() ||
                          dsum.sizes() != sum.sizes()))) {
    throw InternalError("layer_norm_backward: unsupported tensors");
  }
  const auto [rows, columns] = rows_and_columns(sum);
  LayerNormGradients gradients{.sum = at::empty_like(sum),
                               .sum_narrowed = {},
                               .weight = {},
                               .bias = {},
                               .residual_bias = {}};
  if (narrowed) gradients.sum_narrowed = at::empty_like(sum, sum.options().dtype(at::kBFloat16));
  const LayerNormGradientRows all{
      .dy = array_of(dy),
      .dsum = array_of(dsum),
      .sum = array_of(sum),
      .dx = array_of(gradients.sum),
      .narrowed = narrowed ? data_of<Bf16>(gradients.sum_narrowed) : nullptr,
      .weight = weight.const_data_ptr<float>(),
      .mean = saved.mean.const_data_ptr<float>(),
      .inverse = saved.inverse.const_data_ptr<float>(),
      .sums = nullptr,
      .rows = rows,
      .columns = columns,
      .rms = rms,
      .shift = residual_bias};
  const auto sums = sums_over_rows(
      rows, (residual_bias ? 3 : 2) * columns, [&](int64_t begin, int64_t end, float* block_sums) {
        best_kernels<LayerNormKernels>().backward(part(all, begin, end, block_sums));
      });
  gradients.weight = tensor_of(sums.data(), columns, at::kFloat);
  gradients.bias = tensor_of(sums.data() + columns, columns, at::kFloat);
  if (residual_bias) {
    gradients.residual_bias = tensor_of(sums.data() + 2 * columns, columns, at::kFloat);
  }
  return gradients;
}

using Optional = std::optional<at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Four forward_on_cpu(const at::Tensor& x, const Optional& residual, const at::Tensor& weight,
                    const Optional& bias, double eps, bool rms, at::ScalarType output,
                    const Optional& residual_bias) {
  auto result = forward(x, residual.value_or(at::Tensor()), weight, bias.value_or(at::Tensor()),
                        {.eps = eps,
                         .rms = rms,
                         .output = output,
                         .residual_bias = residual_bias.value_or(at::Tensor())});
  // An operator's result is none of its inputs.
  const bool has_sum = residual.has_value() && residual->defined();
  return {result.y, has_sum ? result.sum : at::Tensor(), result.mean, result.inverse};
}

Five backward_on_cpu(const at::Tensor& dy, const Optional& dsum, const at::Tensor& sum,
                     const at::Tensor& mean, const at::Tensor& inverse, const at::Tensor& weight,
                     bool rms, bool narrowed, bool residual_bias) {
  auto result = backward(dy, dsum.value_or(at::Tensor()),
                         {.y = {}, .sum = sum, .mean = mean, .inverse = inverse}, weight, rms,
                         narrowed, residual_bias);
  return {result.sum, result.sum_narrowed, result.weight, result.bias, result.residual_bias};
}

const auto& forward_operator() {
  static const Operator kForward(
      "layer_norm(Tensor x, Tensor? residual, Tensor weight, Tensor? bias, float eps, bool rms, "
      "ScalarType output, Tensor? residual_bias) -> (Tensor y, Tensor sum, Tensor mean, Tensor "
      "inverse)",
      forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "layer_norm_backward(Tensor dy, Tensor? dsum, Tensor sum, Tensor mean, Tensor inverse, "
      "Tensor weight, bool rms, bool narrowed, bool residual_bias) -> (Tensor sum, Tensor "
      "sum_narrowed, Tensor weight, Tensor bias, Tensor residual_bias)",
      backward_on_cpu);
  return kBackward;
}

}  // namespace

c10::OperatorHandle layer_norm_operator() { return forward_operator().handle(); }
c10::OperatorHandle layer_norm_backward_operator() { return backward_operator().handle(); }

LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& residual,
                           const at::Tensor& weight, const at::Tensor& bias,
                           const LayerNormOptions& options) {
  auto [y, sum, mean, inverse] = forward_operator()(
      x, residual, weight, bias, options.eps, options.rms, options.output, options.residual_bias);
  return {.y = y, .sum = sum.defined() ? sum : x, .mean = mean, .inverse = inverse};
}

LayerNormGradients layer_norm_backward(const at::Tensor& dy, const at::Tensor& dsum,
                                       const LayerNormResult& saved, const at::Tensor& weight,
                                       bool rms, bool narrowed, bool residual_bias) {
  auto [sum, sum_narrowed, weight_gradient, bias, more] = backward_operator()(
      dy, dsum, saved.sum, saved.mean, saved.inverse, weight, rms, narrowed, residual_bias);
  return {.sum = sum,
          .sum_narrowed = sum_narrowed,
          .weight = weight_gradient,
          .bias = bias,
          .residual_bias = more};
}

}  // namespace gallop::kernel
