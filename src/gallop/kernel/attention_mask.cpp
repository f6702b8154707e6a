#include "gallop/kernel/attention_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tril.h>

namespace gallop::kernel {

std::optional<MaskedKeys> masked_keys(const at::Tensor& mask, int64_t queries, int64_t keys) {
  if (mask.dim() < 2 || mask.numel() == 0) return std::nullopt;
  const at::Tensor given = mask.cpu();
  at::Tensor visible = given;
  if (given.scalar_type() != at::kBool) {
    visible = given.eq(0);
    // Some masks have the lowest number instead of -infinity: the weight becomes 0, too.
    const double lowest = given.scalar_type() == at::kHalf ? -6e4 : -1e30;
    if (!visible.logical_or(given.le(lowest)).all().item<bool>()) return std::nullopt;
  }
  if (visible.all().item<bool>()) return MaskedKeys::kNone;
  if (queries != keys) return std::nullopt;
  const at::Tensor causal = at::ones({queries, keys}, at::kBool).tril();
  if (!visible.eq(causal).all().item<bool>()) return std::nullopt;
  return MaskedKeys::kLater;
}

}  // namespace gallop::kernel
