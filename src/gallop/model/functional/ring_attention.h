#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/tensor_group.h"

namespace gallop::model::functional {

struct RingAttentionOptions {
  int64_t tokens = 0;   ///< Of a sequence, in all processes.
  bool causal = false;  ///< A token attends to itself and to earlier ones.
  double scale = 1;     ///< Of the scores; usually 1 / sqrt(D).
  double dropout = 0;   ///< Probability, for attention weights.
  /// If defined, int64 [B, T], of the tokens of all processes: as in kernel::AttentionOptions.
  at::Tensor position_ids_BT{};
};

/// Attention of this process's tokens to those of all processes (Liu et al., "Ring Attention with
/// Blockwise Transformers for Near-Infinite Context", 2023). Query, key and value are
/// [B, H, t, D], where the processes have their tokens as in Zigzag, and so is the result.
///
/// Keys and values pass from process to process while each computes attention to those that it
/// has; the results are merged by their log-sum-exp in fp32, or in fp64 for fp64 ("FlashAttention",
/// Dao et al., 2022). The backward pass does so again, and the gradients of keys and values pass
/// along with them. The group must outlive the backward pass.
at::Tensor ring_attention(const at::Tensor& query_BHTD, const at::Tensor& key_BHTD,
                          const at::Tensor& value_BHTD, const RingAttentionOptions& options,
                          const TensorGroup& group);

}  // namespace gallop::model::functional
