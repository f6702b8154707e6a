#pragma once

#include "gallop/kernel/attention_shape.h"
#include "gallop/kernel/documents.h"
#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// Attention in bf16 by AMX or register tiles, one head per thread at a time.
class AttentionByTiles {
 public:
  /// `documents` must outlive this. HeadOptions::tokens is not used.
  AttentionByTiles(Isa isa, const AttentionShape& shape, const HeadOptions& options,
                   const Documents& documents);

  /// False if the instruction set has no bf16 dot products.
  bool is_there() const { return forward_.run != nullptr; }

  void forward(const Bf16* qkv, Bf16* y, float* log_sums) const;
  void backward(const Bf16* dy, const Bf16* qkv, const Bf16* y, const float* log_sums,
                Bf16* dqkv) const;

 private:
  HeadOptions options_of(int64_t tokens) const;

  Isa isa_;
  AttentionShape shape_;
  HeadOptions options_;
  const Documents& documents_;
  AttentionForwardTiles forward_;
  AttentionBackwardTiles backward_;
};

}  // namespace gallop::kernel
