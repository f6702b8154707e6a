#include "gallop/model/exported/fixed_masks.h"

#include <ATen/core/grad_mode.h>

#include "gallop/tensor/recording.h"

namespace gallop::model::exported {

void FixedMask::simplify(torch::jit::Stack& stack) {
  enum Place : size_t { kQuery, kKey, kValue, kMask, kDropout, kIsCausal };
  if (!stack[kMask].isTensor() || !stack[kMask].toTensor().defined() || stack[kIsCausal].toBool()) {
    return;
  }
  const at::Tensor& mask = stack[kMask].toTensor();
  const int64_t queries = stack[kQuery].toTensor().size(-2), keys = stack[kKey].toTensor().size(-2);
  std::vector<int64_t> sizes = mask.sizes().vec();
  sizes.insert(sizes.end(), {queries, keys});
  const std::lock_guard lock(mutex_);
  auto known = known_.find(sizes);
  if (known == known_.end()) {
    const Unrecorded aside;
    const at::NoGradGuard no_grad;
    known = known_.emplace(sizes, kernel::masked_keys(mask, queries, keys)).first;
  }
  if (!known->second) return;
  stack[kMask] = c10::IValue();
  stack[kIsCausal] = *known->second == kernel::MaskedKeys::kLater;
}

}  // namespace gallop::model::exported
