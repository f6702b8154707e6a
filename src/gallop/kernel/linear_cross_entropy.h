#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"

namespace gallop::kernel {

/// Whether linear_cross_entropy() takes them: x [N, K] in fp32 or bf16 and weight [C, K] in fp32 or
/// the format of x, contiguous and on the CPU, or on a GPU that has our kernels, there also fp16;
/// and classes as targets, int64 [N].
bool takes_linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& target);

struct LinearCrossEntropyOptions {
  CrossEntropyOptions targets{};
  bool wants_x = true, wants_weight = true;  ///< Their gradients.
  int64_t most_logits = int64_t{1} << 25;    ///< That are there at a time; at least a row.
};

struct LinearCrossEntropyResult {
  at::Tensor loss;     ///< As cross_entropy()'s.
  at::Tensor correct;  ///< Likewise.
  at::Tensor x;        ///< Gradient of the loss, in the format of x; undefined unless wanted.
  at::Tensor weight;   ///< Likewise, in fp32.
};

/// cross_entropy() of the logits x weight^T, a product in the format of x, of which some rows are
/// there at a time. The gradients are computed along with the loss, while the logits of those rows
/// are at hand: to compute them once more for backward takes a third more time.
LinearCrossEntropyResult linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                              const at::Tensor& target,
                                              const LinearCrossEntropyOptions& options);

/// Multiplies the gradients above in place by `gradient`, that of the loss.
void linear_cross_entropy_backward(const at::Tensor& gradient,
                                   const LinearCrossEntropyResult& result);

}  // namespace gallop::kernel
