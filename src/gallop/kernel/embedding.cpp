#include "gallop/kernel/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/embedding.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

bool is_table(const at::Tensor& tensor) { return is_plain(tensor) && tensor.dim() == 2; }

bool is_indices(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         tensor.scalar_type() == at::kLong && tensor.dim() > 0 && tensor.numel() > 0 &&
         tensor.is_contiguous();
}

void require_rows(const at::Tensor& indices, int64_t rows) {
  const int64_t* data = indices.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (data[i] >= 0 && data[i] < rows) continue;
    throw DataError(fmt::format(
        "token {} at place {} is out of range: the embedding has {} rows, from 0 on; use data "
        "whose vocabulary is the model's",
        data[i], i, rows));
  }
}

// Places of the indices that have each value, in order: those of value v are places[starts[v]] to
// places[starts[v + 1]].
struct Places {
  std::vector<int64_t> starts, places;

  Places(const at::Tensor& indices, int64_t rows)
      : starts(static_cast<size_t>(rows) + 1), places(static_cast<size_t>(indices.numel())) {
    const int64_t* data = indices.const_data_ptr<int64_t>();
    for (size_t i = 0; i < places.size(); ++i) ++starts[static_cast<size_t>(data[i]) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = 0; i < places.size(); ++i) {
      places[static_cast<size_t>(next[static_cast<size_t>(data[i])]++)] = static_cast<int64_t>(i);
    }
  }
  const int64_t* of(int64_t value) const {
    return places.data() + starts[static_cast<size_t>(value)];
  }
  int64_t count(int64_t value) const {
    const auto at = static_cast<size_t>(value);
    return starts[at + 1] - starts[at];
  }
};

template <typename Number>
constexpr bool kIsFp32 = std::is_same_v<Number, float>;

template <typename Number>
void forward(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& positions,
             const at::Tensor& y) {
  const int64_t columns = weight.size(1), tokens = indices.size(-1);
  const int64_t* const rows = indices.const_data_ptr<int64_t>();
  const auto *table = data_of<const Number>(weight), *places = data_of<const Number>(positions);
  auto* const to = data_of<Number>(y);
  at::parallel_for(0, indices.numel(), rows_of_grain(columns), [&](int64_t begin, int64_t end) {
    const auto& kernels = best_kernels<EmbeddingKernels>();
    for (int64_t i = begin; i < end; ++i) {
      const Number* place = places == nullptr ? nullptr : places + i % tokens * columns;
      if constexpr (kIsFp32<Number>) {
        kernels.add_fp32(table + rows[i] * columns, place, to + i * columns, columns);
      } else {
        kernels.add_bf16(table + rows[i] * columns, place, to + i * columns, columns);
      }
    }
  });
}

// Row r of `sums` is the sum of the rows of dy at the places that have r.
template <typename Number>
void sum_places(const at::Tensor& dy, const Places& places, const at::Tensor& sums) {
  const int64_t rows = sums.size(0), columns = sums.size(1);
  const auto* from = data_of<const Number>(dy);
  auto* to = data_of<Number>(sums);
  // A row that stands at many places is a thread's whole work: then they share the columns.
  constexpr int64_t kFewColumns = 64;
  const auto count_of_places = static_cast<int64_t>(places.places.size());
  const bool many = count_of_places > rows, mostly_empty = 4 * count_of_places < rows;
  const int64_t width = many ? std::min(columns, kFewColumns) : columns;
  const int64_t strips = (columns + width - 1) / width;
  at::parallel_for(0, strips * rows, rows_of_grain(width), [&](int64_t begin, int64_t end) {
    const auto& kernels = best_kernels<EmbeddingKernels>();
    // memset does not read what it writes over, but is worth its start for many rows only.
    if (mostly_empty) {
      std::memset(to + begin * columns, 0,
                  static_cast<size_t>((end - begin) * columns) * sizeof *to);
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % rows, first = i / rows * width;
      const int64_t count = std::min(width, columns - first);
      if (mostly_empty && places.count(row) == 0) continue;
      if constexpr (kIsFp32<Number>) {
        kernels.sum_fp32(from + first, columns, places.of(row), places.count(row),
                         to + row * columns + first, count);
      } else {
        kernels.sum_bf16(from + first, columns, places.of(row), places.count(row),
                         to + row * columns + first, count);
      }
    }
  });
}

void sum_any_places(const at::Tensor& dy, const Places& places, const at::Tensor& sums) {
  return dy.scalar_type() == at::kFloat ? sum_places<float>(dy, places, sums)
                                        : sum_places<Bf16>(dy, places, sums);
}

at::Tensor places_of(const at::Tensor& indices) {
  at::Tensor places = at::empty({indices.numel()}, indices.options());
  auto* data = places.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) data[i] = i % indices.size(-1);
  return places;
}

using Optional = std::optional<at::Tensor>;

at::Tensor forward_on_cpu(const at::Tensor& indices, const at::Tensor& weight,
                          const Optional& given_positions) {
  const at::Tensor positions = given_positions.value_or(at::Tensor());
  if (!takes_embedding(indices, weight, positions)) {
    throw InternalError("embedding: unsupported tensors");
  }
  require_rows(indices, weight.size(0));
  auto sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  at::Tensor y = at::empty(sizes, weight.options());
  if (weight.scalar_type() == at::kFloat) {
    forward<float>(indices, weight, positions, y);
  } else {
    forward<Bf16>(indices, weight, positions, y);
  }
  return y;
}

std::tuple<at::Tensor, at::Tensor> backward_on_cpu(const at::Tensor& dy, const at::Tensor& indices,
                                                   int64_t rows, int64_t positions) {
  if (!is_plain(dy) || !is_indices(indices) || dy.dim() != indices.dim() + 1 ||
      dy.sizes().slice(0, static_cast<size_t>(indices.dim())) != indices.sizes() ||
      (positions > 0 && positions < indices.size(-1))) {
    throw InternalError("embedding_backward: unsupported tensors");
  }
  require_rows(indices, rows);
  EmbeddingGradients gradients{.weight = at::empty({rows, dy.size(-1)}, dy.options()),
                               .positions = {}};
  sum_any_places(dy, Places(indices, rows), gradients.weight);
  if (positions > 0) {
    gradients.positions = at::empty({positions, dy.size(-1)}, dy.options());
    sum_any_places(dy, Places(places_of(indices), positions), gradients.positions);
  }
  return {gradients.weight, gradients.positions};
}

}  // namespace

bool takes_embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions) {
  if (!is_indices(indices) || !is_table(weight)) return false;
  return !positions.defined() ||
         (is_table(positions) && positions.scalar_type() == weight.scalar_type() &&
          positions.size(1) == weight.size(1) && positions.size(0) >= indices.size(-1));
}

at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions) {
  static const Operator kForward(
      "embedding(Tensor indices, Tensor weight, Tensor? positions) -> Tensor", forward_on_cpu);
  return kForward(indices, weight, positions.defined() ? Optional(positions) : std::nullopt);
}

EmbeddingGradients embedding_backward(const at::Tensor& dy, const at::Tensor& indices, int64_t rows,
                                      int64_t positions) {
  static const Operator kBackward(
      "embedding_backward(Tensor dy, Tensor indices, int rows, int positions) -> (Tensor weight, "
      "Tensor positions)",
      backward_on_cpu);
  auto [weight, place] = kBackward(dy, indices, rows, positions);
  return {.weight = weight, .positions = place};
}

}  // namespace gallop::kernel
