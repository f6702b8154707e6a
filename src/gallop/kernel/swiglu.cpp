#include "gallop/kernel/swiglu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/swiglu.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

std::vector<int64_t> half_sizes(const at::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() /= 2;
  return sizes;
}

template <typename Number>
void forward(const at::Tensor& x, const at::Tensor& y) {
  const auto [rows, columns] = rows_and_columns(y);
  const auto* from = data_of<const Number>(x);
  auto* to = data_of<Number>(y);
  at::parallel_for(0, rows, rows_of_grain(columns),
                   [&, columns = columns](int64_t begin, int64_t end) {
                     const SwigluRows<Number> part{.x = from + begin * 2 * columns,
                                                   .y = to + begin * columns,
                                                   .rows = end - begin,
                                                   .columns = columns};
                     const auto& kernels = best_kernels<SwigluKernels>();
                     if constexpr (std::is_same_v<Number, float>) {
                       kernels.forward_fp32(part);
                     } else {
                       kernels.forward_bf16(part);
                     }
                   });
}

template <typename Number>
void backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& dx) {
  const auto [rows, columns] = rows_and_columns(dy);
  const auto *gradient = data_of<const Number>(dy), *from = data_of<const Number>(x);
  auto* to = data_of<Number>(dx);
  at::parallel_for(0, rows, rows_of_grain(columns),
                   [&, columns = columns](int64_t begin, int64_t end) {
                     const SwigluGradientRows<Number> part{.dy = gradient + begin * columns,
                                                           .x = from + begin * 2 * columns,
                                                           .dx = to + begin * 2 * columns,
                                                           .rows = end - begin,
                                                           .columns = columns};
                     const auto& kernels = best_kernels<SwigluKernels>();
                     if constexpr (std::is_same_v<Number, float>) {
                       kernels.backward_fp32(part);
                     } else {
                       kernels.backward_bf16(part);
                     }
                   });
}

at::Tensor forward_on_cpu(const at::Tensor& x) {
  if (!takes_swiglu(x)) throw InternalError("swiglu: an unsupported tensor");
  at::Tensor y = at::empty(half_sizes(x), x.options());
  x.scalar_type() == at::kFloat ? forward<float>(x, y) : forward<Bf16>(x, y);
  return y;
}

at::Tensor backward_on_cpu(const at::Tensor& dy, const at::Tensor& x) {
  if (!takes_swiglu(x) || !is_plain(dy) || dy.scalar_type() != x.scalar_type() ||
      dy.sizes() != at::IntArrayRef(half_sizes(x))) {
    throw InternalError("swiglu_backward: unsupported tensors");
  }
  at::Tensor dx = at::empty_like(x);
  x.scalar_type() == at::kFloat ? backward<float>(dy, x, dx) : backward<Bf16>(dy, x, dx);
  return dx;
}

}  // namespace

bool takes_swiglu(const at::Tensor& x) { return is_plain(x) && x.dim() > 0 && x.size(-1) % 2 == 0; }

at::Tensor swiglu(const at::Tensor& x) {
  static const Operator kForward("swiglu(Tensor x) -> Tensor", forward_on_cpu);
  return kForward(x);
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& x) {
  static const Operator kBackward("swiglu_backward(Tensor dy, Tensor x) -> Tensor",
                                  backward_on_cpu);
  return kBackward(dy, x);
}

}  // namespace gallop::kernel
