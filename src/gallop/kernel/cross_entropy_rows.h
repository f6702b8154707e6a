#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"

namespace gallop::kernel {

/// The work of cross_entropy() on tensors that it takes, for kernels that have the logits in parts.

/// Throws DataError where a class of `target` [N] is neither in [0, classes) nor ignored.
void require_classes(const at::Tensor& target, int64_t classes, int64_t ignored);

struct LossSum {
  double loss = 0;
  int64_t correct = 0;
};

/// Sums over all rows, in an order of their own; writes what backward needs to `saved` [N, 2].
LossSum cross_entropy_rows(const at::Tensor& logits, const at::Tensor& target,
                           const CrossEntropyOptions& options, float* saved);

/// Gradients of the logits times `scale` into `gradient`, which may be the logits.
void cross_entropy_gradient_rows(const at::Tensor& logits, const at::Tensor& target,
                                 const float* saved, const CrossEntropyOptions& options,
                                 float scale, const at::Tensor& gradient);

/// As many rows as make at most `most_logits`, or one, in parts of about the same size: each part
/// reads all the weights of the last layer.
int64_t rows_at_once(int64_t rows, int64_t classes, int64_t most_logits);

}  // namespace gallop::kernel
