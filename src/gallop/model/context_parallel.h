#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/dropout.h"
#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model {

/// How the tokens of each text are divided among processes, each of which computes all layers for
/// its tokens. Only attention needs the others. With ContextMethod::kUlysses, a process has
/// consecutive tokens; an all-to-all before attention gives it all tokens of some heads, and one
/// after it all heads of its tokens. With kRing, it has the tokens of functional::Zigzag, and
/// attention is functional::ring_attention(). Activations are [B, T, C] outside of attention.
class ContextParallel {
 public:
  /// The group must outlive it.
  ContextParallel(const TensorGroup& group, ContextMethod method)
      : group_(group), method_(method) {}

  const TensorGroup& group() const { return group_; }
  ContextMethod method() const { return method_; }
  /// Throws UsageError if the processes have to divide the attention heads of a model, and do not.
  void require_divisible(int64_t heads) const;

  /// Begins a pass over texts of so many tokens.
  void begin_pass(int64_t tokens) const { tokens_ = tokens; }
  int64_t tokens() const { return tokens_; }
  /// This process's tokens of what all processes have.
  at::Tensor own_tokens(const at::Tensor& x, int64_t dim) const;
  /// All tokens, [B, T, C], from this process's. All processes use them alike, and each keeps its
  /// part of the gradient.
  at::Tensor all_tokens(const at::Tensor& own_BTC) const;

  /// For kUlysses: from this process's tokens of all heads, [B, t, 3, H, D], to all tokens of its
  /// heads.
  at::Tensor to_heads(const at::Tensor& qkv_BT3HD) const;
  /// From all tokens of this process's heads, [B, T, h, D], to its tokens of all `heads`.
  at::Tensor to_tokens(const at::Tensor& y_BTHD, int64_t heads) const;

  /// Where this process's tokens of activations [B, t, C], or its heads of attention weights
  /// [B, h, T, T], lie in those of all processes, so that they draw the random numbers that they
  /// would draw in one process.
  kernel::DropoutPart part_of_tokens(const at::Tensor& x_BTC) const;
  kernel::DropoutPart part_of_heads(const at::Tensor& weights_BHTT, int64_t heads) const;

 private:
  // The ranges of tokens that this process has.
  std::vector<functional::PartRange> own_ranges() const;

  const TensorGroup& group_;
  ContextMethod method_;
  mutable int64_t tokens_ = 0;  // Tokens of all processes, in this pass.
};

}  // namespace gallop::model
