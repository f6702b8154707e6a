#include "gallop/model/functional/attention_block.h"

#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include "gallop/kernel/isa.h"

namespace gallop::model::functional {

namespace {

std::optional<at::Tensor> mask_of(const AttentionBlock& block) {
  return block.mask.defined() ? std::optional(block.mask) : std::nullopt;
}

bool takes_kernel(const AttentionBlock& block) {
  return !block.mask.defined() && kernel::kernels_enabled() &&
         kernel::takes_attention_block(block.parts, block.causal);
}

at::Tensor scores_of(const AttentionBlock& block) {
  const auto& [query, key, value] = block.parts;
  const auto wide = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)).to(wide).mul_(block.scale);
  if (block.mask.defined()) scores.add_(block.mask);
  if (block.causal) {
    const at::Tensor seen =
        at::ones({scores.size(2), scores.size(3)}, scores.options().dtype(at::kBool)).tril();
    scores.masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return scores;
}

// The weights are stored, as no kernel has dropout.
kernel::BlockAttentionOutput by_products(const AttentionBlock& block) {
  const at::Tensor& value = block.parts.value_BHSD;
  const at::Tensor weights = scores_of(block);
  const at::Tensor log_sums = at::logsumexp(weights, 3);
  weights.sub_(log_sums.unsqueeze(3)).exp_().mul_(block.multiplier);
  return {at::matmul(weights.to(value.scalar_type()), value), log_sums};
}

kernel::AttentionParts by_products_backward(const at::Tensor& dy, const AttentionBlock& block,
                                            const kernel::BlockAttentionOutput& whole) {
  const auto& [query, key, value] = block.parts;
  const auto type = query.scalar_type();
  const at::Tensor weights = scores_of(block);
  weights.sub_(whole.log_sums_BHT.unsqueeze(3)).exp_();
  const auto wide = weights.scalar_type();
  const at::Tensor dots = dy.to(wide).mul(whole.y_BHTD).sum(3, /*keepdim=*/true);
  const at::Tensor dweights = at::matmul(dy, value.transpose(2, 3)).to(wide).mul_(block.multiplier);
  const at::Tensor dscores = dweights.sub_(dots).mul_(weights).mul_(block.scale).to(type);
  const at::Tensor dropped = weights.mul_(block.multiplier).to(type);
  return {.query_BHTD = at::matmul(dscores, key),
          .key_BHSD = at::matmul(dscores.transpose(2, 3), query),
          .value_BHSD = at::matmul(dropped.transpose(2, 3), dy)};
}

}  // namespace

kernel::BlockAttentionOutput attention_block(const AttentionBlock& block) {
  if (block.multiplier.defined()) return by_products(block);
  if (takes_kernel(block)) return kernel::attention_block(block.parts, block.causal, block.scale);
  const auto& [query, key, value] = block.parts;
  auto [y, log_sums] = at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, /*dropout_p=*/0, block.causal, mask_of(block), block.scale);
  return {.y_BHTD = std::move(y), .log_sums_BHT = std::move(log_sums)};
}

kernel::AttentionParts attention_block_backward(const at::Tensor& dy_BHTD,
                                                const AttentionBlock& block,
                                                const kernel::BlockAttentionOutput& whole) {
  if (block.multiplier.defined()) return by_products_backward(dy_BHTD, block, whole);
  if (takes_kernel(block)) {
    return kernel::attention_block_backward(dy_BHTD, block.parts, whole, block.causal, block.scale);
  }
  const auto& [query, key, value] = block.parts;
  auto [dquery, dkey, dvalue] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dy_BHTD, query, key, value, whole.y_BHTD, whole.log_sums_BHT, /*dropout_p=*/0, block.causal,
      mask_of(block), block.scale);
  return {std::move(dquery), std::move(dkey), std::move(dvalue)};
}

}  // namespace gallop::model::functional
