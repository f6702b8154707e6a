#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// Options of attention. Shapes: B batch, T tokens, H heads, D head dimension.
struct AttentionOptions {
  bool causal = false;     ///< A token attends to itself and to earlier ones.
  double scale = 1;        ///< Of the scores; usually 1 / sqrt(D).
  at::Tensor rotation_TD;  ///< If defined, RoPE of queries and keys: see rotation().
  /// If defined, int64: rows contain several documents, each of which begins where the position is
  /// 0 and counts up from there. Tokens attend within their document, and are rotated by their
  /// position in it.
  at::Tensor position_ids_BT{};
};

struct AttentionOutput {
  at::Tensor y_BTHD;
  at::Tensor log_sums_BHT;  ///< fp32 logarithms of the softmax denominators.
};

/// Whether attention() supports this and is the fastest way: fp32 or bf16 on the CPU, contiguous,
/// up to 2,048 tokens (1,024 in fp32 unless causal), heads of even width up to 256.
bool takes_attention(const at::Tensor& qkv_BT3HD, bool causal);

/// softmax(scale * q k^T) v of each head (Vaswani et al., "Attention is all you need", NeurIPS
/// 2017). The weights are never materialized: a block of queries at a time stays in the core's
/// cache (Dao et al., "FlashAttention", NeurIPS 2022), with the whole row of its scores.
/// `qkv_BT3HD` is the output of one linear layer, and nothing is transposed in memory.
AttentionOutput attention(const at::Tensor& qkv_BT3HD, const AttentionOptions& options);

/// Gradient of qkv_BT3HD. The weights are recomputed from the logarithms of the denominators.
at::Tensor attention_backward(const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                              const AttentionOutput& output, const AttentionOptions& options);

/// Queries [B, H, T, D] and keys and values [B, H, S, D], in any memory with contiguous rows, or
/// their gradients.
struct AttentionParts {
  at::Tensor query_BHTD, key_BHSD, value_BHSD;
};

struct BlockAttentionOutput {
  at::Tensor y_BHTD;
  at::Tensor log_sums_BHT;  ///< fp32 logarithms of the softmax denominators.
};

/// Whether attention_block() supports this and is the fastest way: see takes_attention().
bool takes_attention_block(const AttentionParts& parts, bool causal);

/// Attention to a block of the keys of a sequence, where the outputs of all blocks are merged by
/// their logarithms. Causal blocks have as many keys as queries.
BlockAttentionOutput attention_block(const AttentionParts& parts, bool causal, double scale);

/// What the block adds to the gradients of its queries, keys and values; `output` is the merged one
/// of all blocks. Rows of dy are contiguous.
AttentionParts attention_block_backward(const at::Tensor& dy_BHTD, const AttentionParts& parts,
                                        const BlockAttentionOutput& output, bool causal,
                                        double scale);

/// attention() by one instruction set, not as operators: for tests.
AttentionOutput attention_by(Isa isa, const at::Tensor& qkv_BT3HD, const AttentionOptions& options);
at::Tensor attention_backward_by(Isa isa, const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                                 const AttentionOutput& output, const AttentionOptions& options);
BlockAttentionOutput attention_block_by(Isa isa, const AttentionParts& parts, bool causal,
                                        double scale);
AttentionParts attention_block_backward_by(Isa isa, const at::Tensor& dy_BHTD,
                                           const AttentionParts& parts,
                                           const BlockAttentionOutput& output, bool causal,
                                           double scale);

/// Cosines [T, D/2] and sines [T, D/2], concatenated: pair (i, i + D/2) of token t is rotated by
/// t / 10000^(2i/D) (Su et al., "RoFormer", 2021; pairs as in GPT-NeoX and Llama). fp32 [T, D].
at::Tensor rotation(int64_t tokens, int64_t head_width);

}  // namespace gallop::kernel
