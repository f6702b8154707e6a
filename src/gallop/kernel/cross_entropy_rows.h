#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"

namespace gallop::kernel {

/// The steps of cross_entropy(), for kernels that compute some rows of the logits at a time.

/// Throws DataError if a class of `target` [N] is neither in [0, classes) nor ignored.
void require_classes(const at::Tensor& target, int64_t classes, int64_t ignored);

struct LossSum {
  double loss = 0;
  int64_t correct = 0;

  /// Infinite beyond the range of fp32, as LibTorch's sums are.
  float loss_in_fp32() const { return static_cast<float>(loss); }
};

/// Sums over all rows, in a fixed order; writes what the backward pass needs to `saved` [N, 2].
LossSum cross_entropy_rows(const at::Tensor& logits, const at::Tensor& target,
                           const CrossEntropyOptions& options, float* saved);

/// Writes gradients of the logits times `scale` to `gradient`, which may be the logits.
void cross_entropy_gradient_rows(const at::Tensor& logits, const at::Tensor& target,
                                 const float* saved, const CrossEntropyOptions& options,
                                 float scale, const at::Tensor& gradient);

/// The number of rows per part, so that a part has at most `most_logits`, or one row, and parts
/// have about the same size: each part reads all weights of the last layer.
int64_t rows_at_once(int64_t rows, int64_t classes, int64_t most_logits);

}  // namespace gallop::kernel
