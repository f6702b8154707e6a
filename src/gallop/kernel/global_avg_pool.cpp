#include "gallop/kernel/global_avg_pool.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/global_avg_pool.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

template <typename Number>
at::Tensor forward(Isa isa, const at::Tensor& x) {
  const auto kernels = kernels_for<GlobalAvgPoolKernels<Number>>(isa);
  const GlobalAvgPoolSizes sizes{.pixels = x.size(2) * x.size(3), .channels = x.size(1)};
  at::Tensor y = at::empty({x.size(0), sizes.channels}, x.options());
  const int64_t tasks = x.size(0) * parts_of(sizes.channels, kGlobalAvgPoolChannels);
  const int64_t task_channels = std::min(sizes.channels, kGlobalAvgPoolChannels);
  at::parallel_for(
      0, tasks, rows_of_grain(sizes.pixels * task_channels), [&](int64_t begin, int64_t end) {
        kernels.forward(sizes, data_of<const Number>(x), data_of<Number>(y), begin, end);
      });
  return y;
}

template <typename Number>
at::Tensor backward(Isa isa, const at::Tensor& dy, int64_t height, int64_t width) {
  const auto kernels = kernels_for<GlobalAvgPoolKernels<Number>>(isa);
  const GlobalAvgPoolSizes sizes{.pixels = height * width, .channels = dy.size(1)};
  at::Tensor dx = at::empty({dy.size(0), sizes.channels, height, width},
                            dy.options().memory_format(at::MemoryFormat::ChannelsLast));
  at::parallel_for(
      0, dy.size(0) * sizes.pixels, rows_of_grain(sizes.channels), [&](int64_t begin, int64_t end) {
        kernels.backward(sizes, data_of<const Number>(dy), data_of<Number>(dx), begin, end);
      });
  return dx;
}

}  // namespace

bool takes_global_avg_pool(const at::Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided && x.dim() == 4 && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor global_avg_pool_by(Isa isa, const at::Tensor& x) {
  if (!takes_global_avg_pool(x)) throw InternalError("global_avg_pool: an unsupported tensor");
  return x.scalar_type() == at::kFloat ? forward<float>(isa, x) : forward<Bf16>(isa, x);
}

at::Tensor global_avg_pool_backward_by(Isa isa, const at::Tensor& dy, int64_t height,
                                       int64_t width) {
  if (!is_plain(dy) || dy.dim() != 2 || height < 1 || width < 1) {
    throw InternalError("global_avg_pool_backward: an unsupported gradient");
  }
  return dy.scalar_type() == at::kFloat ? backward<float>(isa, dy, height, width)
                                        : backward<Bf16>(isa, dy, height, width);
}

namespace {

at::Tensor forward_on_cpu(const at::Tensor& x) { return global_avg_pool_by(best_isa(), x); }

at::Tensor backward_on_cpu(const at::Tensor& dy, int64_t height, int64_t width) {
  return global_avg_pool_backward_by(best_isa(), dy.contiguous(), height, width);
}

const auto& forward_operator() {
  static const Operator kForward("global_avg_pool(Tensor x) -> Tensor", forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "global_avg_pool_backward(Tensor dy, int height, int width) -> Tensor", backward_on_cpu);
  return kBackward;
}

}  // namespace

c10::OperatorHandle global_avg_pool_operator() { return forward_operator().handle(); }
c10::OperatorHandle global_avg_pool_backward_operator() { return backward_operator().handle(); }

at::Tensor global_avg_pool(const at::Tensor& x) { return forward_operator()(x); }

at::Tensor global_avg_pool_backward(const at::Tensor& dy, int64_t height, int64_t width) {
  return backward_operator()(dy, height, width);
}

}  // namespace gallop::kernel
