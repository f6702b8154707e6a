#include "gallop/kernel/activation.h"

#include <optional>
#include <tuple>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/activation.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

template <typename Number>
void forward(Activation kind, const at::Tensor& x, const float* bias, const at::Tensor& y) {
  const auto [rows, columns] = rows_and_columns(x);
  at::parallel_for(
      0, rows, rows_of_grain(columns), [&, columns = columns](int64_t begin, int64_t end) {
        const ActivationRows<Number> part{.x = data_of<const Number>(x) + begin * columns,
                                          .bias = bias,
                                          .y = data_of<Number>(y) + begin * columns,
                                          .rows = end - begin,
                                          .columns = columns};
        const auto& kernels = best_kernels<ActivationKernels>();
        if constexpr (std::is_same_v<Number, float>) {
          kernels.forward_fp32(kind, part);
        } else {
          kernels.forward_bf16(kind, part);
        }
      });
}

template <typename Number>
void backward_part(Activation kind, ActivationGradientRows<Number> all, int64_t begin, int64_t end,
                   float* sums) {
  all.dy += begin * all.columns;
  all.x += begin * all.columns;
  all.dx += begin * all.columns;
  all.sums = sums;
  all.rows = end - begin;
  const auto& kernels = best_kernels<ActivationKernels>();
  if constexpr (std::is_same_v<Number, float>) {
    kernels.backward_fp32(kind, all);
  } else {
    kernels.backward_bf16(kind, all);
  }
}

// Column sums of dx, or nothing.
template <typename Number>
std::vector<float> backward(Activation kind, const at::Tensor& dy, const at::Tensor& x,
                            const float* bias, const at::Tensor& dx, bool with_sums) {
  const auto [rows, columns] = rows_and_columns(x);
  const ActivationGradientRows<Number> all{.dy = data_of<const Number>(dy),
                                           .x = data_of<const Number>(x),
                                           .bias = bias,
                                           .dx = data_of<Number>(dx),
                                           .sums = nullptr,
                                           .rows = rows,
                                           .columns = columns};
  if (with_sums) {
    return sums_over_rows(rows, columns, [&](int64_t begin, int64_t end, float* sums) {
      backward_part(kind, all, begin, end, sums);
    });
  }
  at::parallel_for(0, rows, rows_of_grain(columns), [&](int64_t begin, int64_t end) {
    backward_part(kind, all, begin, end, nullptr);
  });
  return {};
}

}  // namespace

bool takes_activation(const at::Tensor& x, const at::Tensor& bias) {
  if (!is_plain(x) || x.dim() == 0) return false;
  if (!bias.defined()) return true;
  return is_plain(bias) && bias.dim() == 1 && bias.size(0) == x.size(-1) &&
         (bias.scalar_type() == at::kFloat || bias.scalar_type() == x.scalar_type());
}

namespace {

using Optional = std::optional<at::Tensor>;

at::Tensor forward_on_cpu(int64_t number, const at::Tensor& x, const Optional& given_bias) {
  const auto kind = static_cast<Activation>(number);
  const at::Tensor bias = given_bias.value_or(at::Tensor());
  if (!takes_activation(x, bias)) throw InternalError("activation: an unsupported tensor");
  at::Tensor y = at::empty_like(x);
  const Fp32Row row(bias);
  if (x.scalar_type() == at::kFloat) {
    forward<float>(kind, x, row.data(), y);
  } else {
    forward<Bf16>(kind, x, row.data(), y);
  }
  return y;
}

std::tuple<at::Tensor, at::Tensor> backward_on_cpu(int64_t number, const at::Tensor& dy,
                                                   const at::Tensor& x, const Optional& given_bias,
                                                   std::optional<at::ScalarType> bias_format) {
  const auto kind = static_cast<Activation>(number);
  const at::Tensor bias = given_bias.value_or(at::Tensor());
  if (!takes_activation(x, bias) || !is_plain(dy) || dy.sizes() != x.sizes() ||
      dy.scalar_type() != x.scalar_type()) {
    throw InternalError("activation_backward: unsupported tensors");
  }
  ActivationGradients gradients{.x = at::empty_like(x), .bias = {}};
  const Fp32Row row(bias);
  const bool fp32 = x.scalar_type() == at::kFloat;
  const auto sums = (fp32 ? backward<float> : backward<Bf16>)(kind, dy, x, row.data(), gradients.x,
                                                              bias_format.has_value());
  if (bias_format) gradients.bias = tensor_of(sums.data(), x.size(-1), *bias_format);
  return {gradients.x, gradients.bias};
}

}  // namespace

namespace {

const auto& forward_operator() {
  static const Operator kForward("activation(int kind, Tensor x, Tensor? bias) -> Tensor",
                                 forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "activation_backward(int kind, Tensor dy, Tensor x, Tensor? bias, ScalarType? bias_format) "
      "-> (Tensor x, Tensor bias)",
      backward_on_cpu);
  return kBackward;
}

}  // namespace

c10::OperatorHandle activation_operator() { return forward_operator().handle(); }
c10::OperatorHandle activation_backward_operator() { return backward_operator().handle(); }

at::Tensor activation(Activation kind, const at::Tensor& x, const at::Tensor& bias) {
  return forward_operator()(static_cast<int64_t>(kind), x, bias);
}

ActivationGradients activation_backward(Activation kind, const at::Tensor& dy, const at::Tensor& x,
                                        const at::Tensor& bias,
                                        std::optional<at::ScalarType> bias_format) {
  auto [dx, dbias] = backward_operator()(static_cast<int64_t>(kind), dy, x, bias, bias_format);
  return {.x = dx, .bias = dbias};
}

}  // namespace gallop::kernel
