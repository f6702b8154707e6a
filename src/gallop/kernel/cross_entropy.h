#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Options of softmax cross-entropy, -sum_c t_c log(softmax(x)_c) for a row's logits x, targets t.
struct CrossEntropyOptions {
  int64_t ignored = -100;  ///< The target of ignored rows.
  /// Distributes this much of t uniformly over all classes (Szegedy et al., "Rethinking the
  /// Inception architecture", 2016).
  double label_smoothing = 0;
};

/// Whether the functions below support them: logits [N, C] in fp32 or bf16, contiguous and on the
/// CPU, or, fp16 too, on a GPU that has our kernels; target on the same device, int64 [N] with
/// classes or fp32 or bf16 [N, C] with a probability for each class.
bool takes_cross_entropy(const at::Tensor& logits, const at::Tensor& target);

struct CrossEntropyResult {
  at::Tensor loss;     ///< Sum over the rows, fp32, 0-dim.
  at::Tensor correct;  ///< int64, 0-dim: number of rows whose first largest logit is the
                       ///< target's; undefined for soft targets.
  at::Tensor rows;     ///< [N, 2], for the backward pass.
};

/// Computes the loss in one pass, in fp32. Throws DataError if a class is out of range; on a GPU
/// the loss is NaN then.
CrossEntropyResult cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                 const CrossEntropyOptions& options);

/// The gradient of the logits, in their format, in one pass. `gradient` is that of the loss,
/// 0-dim.
at::Tensor cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& logits,
                                  const at::Tensor& target, const at::Tensor& rows,
                                  const CrossEntropyOptions& options);

}  // namespace gallop::kernel
