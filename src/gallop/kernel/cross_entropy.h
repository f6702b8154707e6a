#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Of softmax cross-entropy, -sum_c t_c log(softmax(x)_c) for a row's logits x and targets t.
struct CrossEntropyOptions {
  int64_t ignored = -100;  ///< The target of rows that do not count.
  /// Moves this much of t to all classes alike (Szegedy et al., "Rethinking the Inception
  /// architecture", 2016).
  double label_smoothing = 0;
};

/// Whether the functions below take them: logits [N, C] in fp32 or bf16, contiguous and on the CPU,
/// or on a GPU that has our kernels, there also fp16; target likewise, int64 [N] with classes or
/// fp32 or bf16 [N, C] with a share for each class.
bool takes_cross_entropy(const at::Tensor& logits, const at::Tensor& target);

struct CrossEntropyResult {
  at::Tensor loss;     ///< Sum over the rows, fp32 without dimensions.
  at::Tensor correct;  ///< int64 without dimensions: rows whose first largest logit is the
                       ///< target's; undefined where targets are shares.
  at::Tensor rows;     ///< [N, 2], what backward needs.
};

/// In one pass, fp32 inside. Throws DataError where a class is out of range; on a GPU the loss is
/// no number then.
CrossEntropyResult cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                 const CrossEntropyOptions& options);

/// From `gradient`, that of the loss, a number without dimensions: the gradient of the logits, in
/// their format, in one pass.
at::Tensor cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& logits,
                                  const at::Tensor& target, const at::Tensor& rows,
                                  const CrossEntropyOptions& options);

}  // namespace gallop::kernel
