#include "gallop/kernel/linear_weight.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/layout.h"
#include "gallop/kernel/cpu/weight_gradient.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"
#include "gallop/kernel/products.h"

namespace gallop::kernel {

namespace {

using Side = Matrix<const Bf16>;

constexpr int64_t kRows = 512;   // That are laid out at a time: in the core's cache.
constexpr int64_t kPanel = 128;  // Columns of the woven side in one product.
constexpr int64_t kColumns = 16;

// Into how many parts each side is cut, for as many tasks.
struct Cut {
  int64_t turned = 1, woven = 1;

  // The part of `side` that is number i of some.
  static Side part(const Side& side, int64_t i, int64_t parts) {
    const int64_t blocks = side.columns / kColumns;
    const int64_t begin = blocks * i / parts * kColumns, end = blocks * (i + 1) / parts * kColumns;
    return {side.data + begin, side.rows, end - begin, side.stride};
  }
};

// By the cycles of a task for each row: one for 512 multiply-adds, and those of laying out.
Cut cheapest_cut(int64_t turned, int64_t woven, int64_t threads) {
  const auto cost = [&](const Cut& cut) {
    const auto m = static_cast<double>(parts_of(turned, cut.turned));
    const auto n = static_cast<double>(parts_of(woven, cut.woven));
    return m * n / 512 + m * 0.2 + n * 0.08;
  };
  Cut best{.turned = 1, .woven = std::min(threads, woven / kColumns)};
  for (int64_t parts = 2; parts <= std::min(threads, turned / kColumns); ++parts) {
    const Cut cut{.turned = parts,
                  .woven = std::clamp<int64_t>(threads / parts, 1, woven / kColumns)};
    if (cost(cut) < cost(best)) best = cut;
  }
  return best;
}

// The work of one thread: sums[m, n] = turned[rows, m]^T woven[rows, n].
class Worker {
 public:
  Worker(Isa isa, const Side& turned, const Side& woven)
      : turned_side_(turned),
        woven_side_(woven),
        bodies_(bodies_of<WeightGradientBodies>(isa)),
        products_(isa),
        rows_(std::min(kRows, up_to(turned.rows, 2 * kColumns))),
        tail_size_(2 * kColumns * std::max(turned.columns, woven.columns)),
        scratch_(Scratch::bytes_of<Bf16>(rows_ * turned.columns) +
                 Scratch::bytes_of<Bf16>(rows_ * kPanel) + Scratch::bytes_of<Bf16>(tail_size_) +
                 Scratch::bytes_of<float>(turned.columns * woven.columns)),
        turned_(scratch_.take<Bf16>(rows_ * turned.columns)),
        woven_(scratch_.take<Bf16>(rows_ * kPanel)),
        tail_(scratch_.take<Bf16>(tail_size_)),
        sums_(scratch_.take<float>(turned.columns * woven.columns)) {}

  const float* run() {
    const int64_t whole = turned_side_.rows / (2 * kColumns) * (2 * kColumns);
    for (int64_t row = 0; row < whole; row += kRows) {
      const int64_t rows = std::min(kRows, whole - row);
      add(turned_side_.row(row), turned_side_.stride, woven_side_.row(row), woven_side_.stride,
          rows, row > 0);
    }
    if (whole < turned_side_.rows) add_tail(whole);
    return sums_;
  }

 private:
  void add(const Bf16* turned, int64_t turned_stride, const Bf16* woven, int64_t woven_stride,
           int64_t rows, bool more) {
    bodies_.turn(turned, turned_stride, rows, turned_side_.columns, turned_);
    add_turned(woven, woven_stride, rows, more);
  }

  void add_turned(const Bf16* woven, int64_t stride, int64_t rows, bool more) {
    const int64_t columns = woven_side_.columns;
    for (int64_t column = 0; column < columns; column += kPanel) {
      const int64_t width = std::min(kPanel, columns - column);
      bodies_.weave(woven + column, stride, rows, width, woven_);
      products_.multiply(turned_side_.columns, width, rows, turned_, rows, woven_, width,
                         sums_ + column, columns, more);
    }
  }

  // Rows that do not fill a tile, with zeros behind.
  void add_tail(int64_t first) {
    constexpr int64_t kTail = 2 * kColumns;
    bodies_.turn(padded_tail(turned_side_, first), turned_side_.columns, kTail,
                 turned_side_.columns, turned_);
    add_turned(padded_tail(woven_side_, first), woven_side_.columns, kTail, first > 0);
  }

  const Bf16* padded_tail(const Side& side, int64_t first) const {
    std::memset(static_cast<void*>(tail_), 0, static_cast<size_t>(tail_size_) * sizeof(Bf16));
    for (int64_t row = first; row < side.rows; ++row) {
      std::memcpy(static_cast<void*>(tail_ + (row - first) * side.columns), side.row(row),
                  static_cast<size_t>(side.columns) * sizeof(Bf16));
    }
    return tail_;
  }

  const Side &turned_side_, &woven_side_;
  WeightGradientBodies bodies_;
  Products<Bf16> products_;
  int64_t rows_, tail_size_;
  Scratch scratch_;
  Bf16 *turned_, *woven_, *tail_;
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
  return linear_weight_by(best_isa(), dy, x);
}

const auto& linear_weight_of() {
  static const Operator kOperator("linear_weight(Tensor dy, Tensor x) -> Tensor", on_cpu);
  return kOperator;
}

}  // namespace

c10::OperatorHandle linear_weight_operator() { return linear_weight_of().handle(); }

bool takes_linear_weight(const at::Tensor& dy, const at::Tensor& x) {
  // Beyond that the sums of a part do not stay in the core's cache: docs/kernels.md.
  constexpr int64_t kLeastRows = 256, kMostWeights = 2'500'000;
  return best_isa() >= Isa::kAvx512Bf16 && fits(dy, x) && dy.size(0) >= kLeastRows &&
         dy.size(1) * x.size(1) <= kMostWeights;
}

at::Tensor linear_weight_by(Isa isa, const at::Tensor& dy, const at::Tensor& x) {
  if (!fits(dy, x)) throw InternalError("linear_weight: tensors that it does not take");
  at::Tensor weight = at::empty({dy.size(1), x.size(1)}, x.options());
  auto* const to = data_of<Bf16>(weight);
  const int64_t stride = weight.size(1);
  const auto side = [](const at::Tensor& tensor) -> Side {
    return {data_of<const Bf16>(tensor), tensor.size(0), tensor.size(1), tensor.size(1)};
  };
  // To turn a matrix costs more than to weave one, so that is done to the narrower.
  const bool turns_x = x.size(1) < dy.size(1);
  const Side turned = side(turns_x ? x : dy), woven = side(turns_x ? dy : x);
  const Cut cut = cheapest_cut(turned.columns, woven.columns, at::get_num_threads());
  const auto bodies = bodies_of<WeightGradientBodies>(isa);
  at::parallel_for(0, cut.turned * cut.woven, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Side left = Cut::part(turned, task / cut.woven, cut.turned);
      const Side right = Cut::part(woven, task % cut.woven, cut.woven);
      const int64_t row = left.data - turned.data, column = right.data - woven.data;
      Worker worker(isa, left, right);
      const float* sums = worker.run();
      if (turns_x) {
        bodies.round_turned(sums, left.columns, right.columns, to + column * stride + row, stride);
      } else {
        bodies.round(sums, left.columns, right.columns, to + row * stride + column, stride);
      }
    }
  });
  return weight;
}

at::Tensor linear_weight(const at::Tensor& dy, const at::Tensor& x) {
  return linear_weight_of()(dy, x);
}

}  // namespace gallop::kernel
