#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cpu/attention_tiles.h"
#include "gallop/kernel/documents.h"

namespace gallop::kernel {

/// Sizes of a packed tensor of queries, keys and values, and the positions of its heads. Heads are
/// counted over the batch.
struct AttentionShape {
  int64_t batch, tokens, heads, width;

  explicit AttentionShape(const at::Tensor& qkv_BT3HD)
      : batch(qkv_BT3HD.size(0)),
        tokens(qkv_BT3HD.size(1)),
        heads(qkv_BT3HD.size(3)),
        width(qkv_BT3HD.size(4)) {}

  int64_t count() const { return batch * heads; }

  /// The queries (part 0), keys (1) or values (2) of head i.
  template <typename Any>
  Matrix<Any> part(Any* qkv, int64_t i, int64_t which) const {
    const int64_t row = 3 * heads * width;
    const int64_t sample = i / heads, h = i % heads;
    return {qkv + sample * tokens * row + (which * heads + h) * width, tokens, width, row};
  }

  /// The rows of head i of a tensor [B, T, H, D].
  template <typename Any>
  Matrix<Any> output(Any* y, int64_t i) const {
    const int64_t row = heads * width;
    const int64_t sample = i / heads, h = i % heads;
    return {y + sample * tokens * row + h * width, tokens, width, row};
  }

  template <typename Any>
  HeadParts<Any> parts(Any* qkv, int64_t i, const Document& one) const {
    return {.query = one.of(part(qkv, i, 0)),
            .key = one.of(part(qkv, i, 1)),
            .value = one.of(part(qkv, i, 2))};
  }
};

}  // namespace gallop::kernel
