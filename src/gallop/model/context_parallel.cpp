#include "gallop/model/context_parallel.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/functional/zigzag.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model {

void ContextParallel::require_divisible(int64_t heads) const {
  if (method_ == ContextMethod::kRing) return;
  model::require_divisible("context", group_.size(), heads, "attention heads", "model.heads",
                           "set parallel.context_parallel_method=ring");
}

std::vector<functional::PartRange> ContextParallel::own_ranges() const {
  if (method_ == ContextMethod::kUlysses) return {functional::part_range(tokens_, group_)};
  const functional::Zigzag zigzag(tokens_, group_.size());
  return {zigzag.early(group_.rank()), zigzag.late(group_.rank())};
}

at::Tensor ContextParallel::own_tokens(const at::Tensor& x, int64_t dim) const {
  std::vector<at::Tensor> parts;
  for (const auto& range : own_ranges()) parts.push_back(x.narrow(dim, range.begin, range.size()));
  return parts.size() == 1 ? parts.front() : at::cat(parts, dim);
}

at::Tensor ContextParallel::all_tokens(const at::Tensor& own_BTC) const {
  if (method_ == ContextMethod::kUlysses) {
    return functional::gather_parts(own_BTC, 1, tokens_, /*sums_gradient=*/false, group_);
  }
  std::vector<int64_t> sizes = own_BTC.sizes().vec();
  sizes[1] = tokens_;
  const at::Tensor positions =
      functional::Zigzag(tokens_, group_.size()).positions_of(group_.rank());
  return functional::reduce_from_tensor_parallel_region(
      at::zeros(sizes, own_BTC.options()).index_copy(1, positions, own_BTC), group_);
}

at::Tensor ContextParallel::to_heads(const at::Tensor& qkv_BT3HD) const {
  return functional::redistribute(qkv_BT3HD, /*from=*/1, tokens_, /*to=*/3, group_);
}

at::Tensor ContextParallel::to_tokens(const at::Tensor& y_BTHD, int64_t heads) const {
  return functional::redistribute(y_BTHD, /*from=*/2, heads, /*to=*/1, group_);
}

kernel::DropoutPart ContextParallel::part_of_tokens(const at::Tensor& x_BTC) const {
  return functional::dropout_part(x_BTC, 1, tokens_, own_ranges());
}

kernel::DropoutPart ContextParallel::part_of_heads(const at::Tensor& weights_BHTT,
                                                   int64_t heads) const {
  return functional::dropout_part(weights_BHTT, 1, heads, {functional::part_range(heads, group_)});
}

}  // namespace gallop::model
