#include "gallop/train/losses/shared_rows.h"

#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>

#include "gallop/model/functional/tensor_parallel.h"

namespace gallop::train {

namespace {

thread_local const SharedRowsScope* current = nullptr;

}  // namespace

SharedRowsScope::SharedRowsScope(const TensorGroup& group, int64_t rows)
    : outer_(std::exchange(current, this)), group_(group), rows_(rows) {}

SharedRowsScope::~SharedRowsScope() { current = outer_; }

SharedRows SharedRows::of(const at::Tensor& own) {
  if (current == nullptr) return {.rows = own, .is_missing = {}};
  const TensorGroup& group = current->group_;
  const std::vector<int64_t> bounds = model::functional::part_bounds(current->rows_, group.size());
  const auto rank = static_cast<size_t>(group.rank());
  const int64_t part = bounds[rank + 1] - bounds[rank], width = own.size(1);
  const at::Tensor marked = at::cat({own, at::ones({own.size(0), 1}, own.options())}, 1);
  const at::Tensor all = model::functional::gather_parts(
      at::constant_pad_nd(marked, {0, 0, 0, part - own.size(0)}), 0, current->rows_,
      /*sums_gradient=*/true, group);
  return {.rows = all.slice(1, 0, width),
          .is_missing = all.detach().select(1, width).eq(0),
          .first = bounds[rank]};
}

}  // namespace gallop::train
