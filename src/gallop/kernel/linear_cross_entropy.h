#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"

namespace gallop::kernel {

/// Whether linear_cross_entropy() supports them: x [N, K] in fp32 or bf16 and weight [C, K] in fp32
/// or the format of x, contiguous and on the CPU or, fp16 too, on a GPU that has our kernels; and
/// classes as targets, int64 [N].
bool takes_linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& target);

struct LinearCrossEntropyOptions {
  CrossEntropyOptions targets{};
  bool wants_x = true, wants_weight = true;  ///< Which gradients to compute.
  int64_t most_logits = int64_t{1} << 25;    ///< Maximum number held at a time; at least a row.
};

struct LinearCrossEntropyResult {
  at::Tensor loss;     ///< As in CrossEntropyResult.
  at::Tensor correct;  ///< As in CrossEntropyResult.
  at::Tensor x;        ///< Gradient of the loss, in the format of x; undefined unless wanted.
  at::Tensor weight;   ///< Gradient of the loss, in fp32; undefined unless wanted.
};

/// cross_entropy() of the logits x weight^T, a GEMM in the format of x, computed for some rows at a
/// time. The gradients are computed together with the loss, while the logits of those rows are in
/// memory: recomputing them in the backward pass would take a third more time.
LinearCrossEntropyResult linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                              const at::Tensor& target,
                                              const LinearCrossEntropyOptions& options);

/// Multiplies the gradients above in place by `gradient`, the gradient of the loss.
void linear_cross_entropy_backward(const at::Tensor& gradient,
                                   const LinearCrossEntropyResult& result);

}  // namespace gallop::kernel
