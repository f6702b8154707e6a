#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

// What tokens need that different experts compute. Letters: T tokens, C width, E experts, k experts
// of a token. A token has k copies, which are sorted by expert, and among those of one expert by
// token.
namespace gallop::model::functional {

/// Where each copy lies, and what an expert computes. All int64.
struct ExpertOrder {
  at::Tensor copies;  ///< [T k]: the copy in each row, token * k + place among the token's experts.
  at::Tensor rows;    ///< [T, k]: the row of each copy.
  at::Tensor ranges;  ///< [E, 2]: the rows that each expert computes.
  at::Tensor counts;  ///< [E]: copies that the router has sent to each expert.
};

/// Sorts copies by their expert, int64 [T, k]. An expert computes at most `capacity` copies, those
/// of the first tokens; 0: all.
ExpertOrder order_by_expert(const at::Tensor& experts, int64_t count, int64_t capacity);
/// Whether each copy is computed, bool [T, k].
at::Tensor computed_copies(const ExpertOrder& order, const at::Tensor& experts);

/// The copies of tokens x [T, C] in their order, [T k, C].
at::Tensor dispatch(const at::Tensor& x, const ExpertOrder& order);
/// grouped_linear() with gradients, in the format of autocast.
at::Tensor expert_linear(const at::Tensor& x, const at::Tensor& weight, const ExpertOrder& order);
/// The weighted sum of the results y [T k, C] of each token's copies, [T, C]: in fp32 and in the
/// order of its experts, so that no bit depends on the number of threads. Weights are [T, k].
at::Tensor combine(const at::Tensor& y, const at::Tensor& weights, const ExpertOrder& order);

}  // namespace gallop::model::functional
