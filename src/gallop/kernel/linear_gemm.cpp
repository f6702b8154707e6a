#include "gallop/kernel/linear_gemm.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/linear_gemm.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

using Side = Matrix<const Bf16>;

Side side_of(const at::Tensor& tensor) {
  return {data_of<const Bf16>(tensor), tensor.size(0), tensor.size(1), tensor.size(1)};
}

// Checks sizes and data types, not speed.
bool fits(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight) {
  const auto is_side = [](const at::Tensor& side) {
    return is_plain(side) && side.dim() == 2 && side.scalar_type() == at::kBFloat16 &&
           side.size(0) > 0 && side.size(1) > 0 && side.size(1) % 32 == 0;
  };
  return best_isa() >= Isa::kAmx && is_side(x) && is_side(weight) && weight.size(0) % 32 == 0 &&
         weight.size(transposed_weight ? 1 : 0) == x.size(1);
}

at::Tensor on_cpu(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight) {
  if (!fits(x, weight, transposed_weight)) {
    throw InternalError("linear_gemm: unsupported tensors");
  }
  constexpr int64_t kRows = LinearGemmKernels::kRows, kColumns = LinearGemmKernels::kColumns;
  const int64_t rows = x.size(0), inner = x.size(1),
                outputs = weight.size(transposed_weight ? 0 : 1);
  const auto& kernels = best_kernels<LinearGemmKernels>();
  at::Tensor y = at::empty({rows, outputs}, x.options());
  Scratch scratch(Scratch::bytes_of<Bf16>(weight.numel()));
  auto* const panels = scratch.take<Bf16>(weight.numel());
  at::parallel_for(0, outputs / kColumns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      kernels.lay_panel(side_of(weight), transposed_weight, panel,
                        panels + panel * kColumns * inner);
    }
  });
  at::parallel_for(0, parts_of(rows, kRows), 1, [&](int64_t begin, int64_t end) {
    const Gemm<Bf16> tiles(best_isa());
    Scratch room(Scratch::bytes_of<Bf16>(kRows * inner) +
                 Scratch::bytes_of<float>(kRows * outputs));
    auto* const rows_room = room.take<Bf16>(kRows * inner);
    auto* const sums_room = room.take<float>(kRows * outputs);
    const int64_t end_row = std::min(rows, end * kRows);
    for (int64_t first = begin * kRows; first < end_row; first += kRows) {
      const int64_t count = std::min(kRows, end_row - first);
      const int64_t next = std::min(kRows, end_row - first - count);
      kernels.multiply({data_of<const Bf16>(x) + first * inner, count, inner, inner}, panels, next,
                       rows_room, sums_room,
                       {data_of<Bf16>(y) + first * outputs, count, outputs, outputs});
    }
  });
  return y;
}

const auto& product_of() {
  static const Operator kOperator(
      "linear_gemm(Tensor x, Tensor weight, bool transposed_weight) -> Tensor", on_cpu);
  return kOperator;
}

}  // namespace

c10::OperatorHandle linear_gemm_operator() { return product_of().handle(); }

bool takes_linear_gemm(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight) {
  constexpr int64_t kLeastRows = 256, kMostWeights = 1 << 19;
  return fits(x, weight, transposed_weight) && x.size(0) >= kLeastRows &&
         weight.numel() <= kMostWeights;
}

at::Tensor linear_gemm(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight) {
  return product_of()(x, weight, transposed_weight);
}

}  // namespace gallop::kernel
