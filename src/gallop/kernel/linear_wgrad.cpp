#include "gallop/kernel/linear_wgrad.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/layout.h"
#include "gallop/kernel/cpu/weight_gradient.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

using Side = Matrix<const Bf16>;

constexpr int64_t kRows = 512;   // That are laid out at a time: in the core's cache.
constexpr int64_t kPanel = 128;  // Columns of the interleaved operand in one GEMM.
constexpr int64_t kColumns = 16;

// The number of parts of each operand, for as many tasks.
struct Cut {
  int64_t transposed = 1, interleaved = 1;

  // Part `i` of `parts` of `side`.
  static Side part(const Side& side, int64_t i, int64_t parts) {
    const int64_t blocks = side.columns / kColumns;
    const int64_t begin = blocks * i / parts * kColumns, end = blocks * (i + 1) / parts * kColumns;
    return {side.data + begin, side.rows, end - begin, side.stride};
  }
};

// Minimizes a task's cycles per row: one for 512 multiply-adds, plus those of packing.
Cut cheapest_cut(int64_t transposed, int64_t interleaved, int64_t threads) {
  const auto cost = [&](const Cut& cut) {
    const auto m = static_cast<double>(parts_of(transposed, cut.transposed));
    const auto n = static_cast<double>(parts_of(interleaved, cut.interleaved));
    return m * n / 512 + m * 0.2 + n * 0.08;
  };
  Cut best{.transposed = 1, .interleaved = std::min(threads, interleaved / kColumns)};
  for (int64_t parts = 2; parts <= std::min(threads, transposed / kColumns); ++parts) {
    const Cut cut{.transposed = parts,
                  .interleaved = std::clamp<int64_t>(threads / parts, 1, interleaved / kColumns)};
    if (cost(cut) < cost(best)) best = cut;
  }
  return best;
}

// The work of one thread: sums[m, n] = transposed[rows, m]^T interleaved[rows, n].
class Worker {
 public:
  Worker(Isa isa, const Side& transposed, const Side& interleaved)
      : transposed_side_(transposed),
        interleaved_side_(interleaved),
        kernels_(kernels_for<WeightGradientKernels>(isa)),
        products_(isa),
        rows_(std::min(kRows, up_to(transposed.rows, 2 * kColumns))),
        tail_size_(2 * kColumns * std::max(transposed.columns, interleaved.columns)),
        scratch_(Scratch::bytes_of<Bf16>(rows_ * transposed.columns) +
                 Scratch::bytes_of<Bf16>(rows_ * kPanel) + Scratch::bytes_of<Bf16>(tail_size_) +
                 Scratch::bytes_of<float>(transposed.columns * interleaved.columns)),
        transposed_(scratch_.take<Bf16>(rows_ * transposed.columns)),
        interleaved_(scratch_.take<Bf16>(rows_ * kPanel)),
        tail_(scratch_.take<Bf16>(tail_size_)),
        sums_(scratch_.take<float>(transposed.columns * interleaved.columns)) {}

  const float* run() {
    const int64_t whole = transposed_side_.rows / (2 * kColumns) * (2 * kColumns);
    for (int64_t row = 0; row < whole; row += kRows) {
      const int64_t rows = std::min(kRows, whole - row);
      add(transposed_side_.row(row), transposed_side_.stride, interleaved_side_.row(row),
          interleaved_side_.stride, rows, row > 0);
    }
    if (whole < transposed_side_.rows) add_tail(whole);
    return sums_;
  }

 private:
  void add(const Bf16* transposed, int64_t transposed_stride, const Bf16* interleaved,
           int64_t interleaved_stride, int64_t rows, bool more) {
    kernels_.turn(transposed, transposed_stride, rows, transposed_side_.columns, transposed_);
    add_transposed(interleaved, interleaved_stride, rows, more);
  }

  void add_transposed(const Bf16* interleaved, int64_t stride, int64_t rows, bool more) {
    const int64_t columns = interleaved_side_.columns;
    for (int64_t column = 0; column < columns; column += kPanel) {
      const int64_t width = std::min(kPanel, columns - column);
      kernels_.interleave(interleaved + column, stride, rows, width, interleaved_);
      products_.multiply(transposed_side_.columns, width, rows, transposed_, rows, interleaved_,
                         width, sums_ + column, columns, more);
    }
  }

  // Rows that do not fill a tile, padded with zeros.
  void add_tail(int64_t first) {
    constexpr int64_t kTail = 2 * kColumns;
    kernels_.turn(padded_tail(transposed_side_, first), transposed_side_.columns, kTail,
                  transposed_side_.columns, transposed_);
    add_transposed(padded_tail(interleaved_side_, first), interleaved_side_.columns, kTail,
                   first > 0);
  }

  const Bf16* padded_tail(const Side& side, int64_t first) const {
    std::memset(static_cast<void*>(tail_), 0, static_cast<size_t>(tail_size_) * sizeof(Bf16));
    for (int64_t row = first; row < side.rows; ++row) {
      std::memcpy(static_cast<void*>(tail_ + (row - first) * side.columns), side.row(row),
                  static_cast<size_t>(side.columns) * sizeof(Bf16));
    }
    return tail_;
  }

  const Side &transposed_side_, &interleaved_side_;
  WeightGradientKernels kernels_;
  Gemm<Bf16> products_;
  int64_t rows_, tail_size_;
  Scratch scratch_;
  Bf16 *transposed_, *interleaved_, *tail_;
  float* sums_;
};

bool fits(const at::Tensor& dy, const at::Tensor& x) {
  const auto is_side = [](const at::Tensor& side) {
    return is_plain(side) && side.dim() == 2 && side.scalar_type() == at::kBFloat16 &&
           side.numel() > 0 && side.size(1) % kColumns == 0;
  };
  return is_side(dy) && is_side(x) && dy.size(0) == x.size(0);
}

at::Tensor on_cpu(const at::Tensor& dy, const at::Tensor& x) {
  return linear_wgrad_by(best_isa(), dy, x);
}

const auto& linear_weight_of() {
  static const Operator kOperator("linear_wgrad(Tensor dy, Tensor x) -> Tensor", on_cpu);
  return kOperator;
}

}  // namespace

c10::OperatorHandle linear_wgrad_operator() { return linear_weight_of().handle(); }

bool takes_linear_wgrad(const at::Tensor& dy, const at::Tensor& x) {
  // With more weights, the sums of a part exceed the core's cache: docs/kernels.md.
  constexpr int64_t kLeastRows = 256, kMostWeights = 2'500'000;
  return best_isa() >= Isa::kAvx512Bf16 && fits(dy, x) && dy.size(0) >= kLeastRows &&
         dy.size(1) * x.size(1) <= kMostWeights;
}

at::Tensor linear_wgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& x) {
  if (!fits(dy, x)) throw InternalError("linear_wgrad: unsupported tensors");
  at::Tensor weight = at::empty({dy.size(1), x.size(1)}, x.options());
  auto* const to = data_of<Bf16>(weight);
  const int64_t stride = weight.size(1);
  const auto side = [](const at::Tensor& tensor) -> Side {
    return {data_of<const Bf16>(tensor), tensor.size(0), tensor.size(1), tensor.size(1)};
  };
  // Transposing a matrix costs more than interleaving it, so the narrower one is transposed.
  const bool turns_x = x.size(1) < dy.size(1);
  const Side transposed = side(turns_x ? x : dy), interleaved = side(turns_x ? dy : x);
  const Cut cut = cheapest_cut(transposed.columns, interleaved.columns, at::get_num_threads());
  const auto kernels = kernels_for<WeightGradientKernels>(isa);
  at::parallel_for(0, cut.transposed * cut.interleaved, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Side left = Cut::part(transposed, task / cut.interleaved, cut.transposed);
      const Side right = Cut::part(interleaved, task % cut.interleaved, cut.interleaved);
      const int64_t row = left.data - transposed.data, column = right.data - interleaved.data;
      Worker worker(isa, left, right);
      const float* sums = worker.run();
      if (turns_x) {
        kernels.round_transposed(sums, left.columns, right.columns, to + column * stride + row,
                                 stride);
      } else {
        kernels.round(sums, left.columns, right.columns, to + row * stride + column, stride);
      }
    }
  });
  return weight;
}

at::Tensor linear_wgrad(const at::Tensor& dy, const at::Tensor& x) {
  return linear_weight_of()(dy, x);
}

}  // namespace gallop::kernel
