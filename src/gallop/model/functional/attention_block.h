#pragma once

#include "gallop/kernel/attention.h"

namespace gallop::model::functional {

/// Attention of some queries of a sequence to some of its keys and values.
struct AttentionBlock {
  kernel::AttentionParts parts;
  bool causal = false;      ///< Query i attends to keys up to i; T equals S.
  double scale = 1;         ///< Of the scores.
  at::Tensor mask{};        ///< If defined, is added to the scores; finite, [B, 1, T, S].
  at::Tensor multiplier{};  ///< If defined, multiplies the weights (dropout), [B, H, T, S].
};

/// kernel::attention_block(), of any type and length: by LibTorch's kernels where it does not
/// support the block, and by GEMMs with a multiplier. Of fp64, logarithms are fp64 as well.
kernel::BlockAttentionOutput attention_block(const AttentionBlock& block);
/// kernel::attention_block_backward(); `whole` is the merged output of all blocks.
kernel::AttentionParts attention_block_backward(const at::Tensor& dy_BHTD,
                                                const AttentionBlock& block,
                                                const kernel::BlockAttentionOutput& whole);

}  // namespace gallop::model::functional
