#include "gallop/model/context_parallel.h"

#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model {

void ContextParallel::require_divisible(int64_t heads) const {
  model::require_divisible("context", group_.size(), heads, "attention heads", "model.heads");
}

at::Tensor ContextParallel::own_tokens(const at::Tensor& x, int64_t dim) const {
  const functional::PartRange own = functional::part_range(tokens_, group_);
  return x.narrow(dim, own.begin, own.size());
}

at::Tensor ContextParallel::to_heads(const at::Tensor& qkv_BT3HD) const {
  return functional::redistribute(qkv_BT3HD, /*from=*/1, tokens_, /*to=*/3, group_);
}

at::Tensor ContextParallel::to_tokens(const at::Tensor& y_BTHD, int64_t heads) const {
  return functional::redistribute(y_BTHD, /*from=*/2, heads, /*to=*/1, group_);
}

kernel::DropoutPart ContextParallel::part_of_tokens(const at::Tensor& x_BTC) const {
  return functional::dropout_part(x_BTC, 1, tokens_, group_);
}

kernel::DropoutPart ContextParallel::part_of_heads(const at::Tensor& weights_BHTT,
                                                   int64_t heads) const {
  return functional::dropout_part(weights_BHTT, 1, heads, group_);
}

}  // namespace gallop::model
