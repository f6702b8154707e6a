#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"
#include "gallop/model/output.h"

namespace gallop::model::functional {

struct LossSum {
  at::Tensor loss;     ///< Sum over all targets that count, with its gradient; no dimensions.
  at::Tensor correct;  ///< int64: rows whose first largest logit is the target; if requested.
};

struct LossOptions {
  kernel::CrossEntropyOptions targets{};
  bool count_correct = false;  ///< For class labels only.
};

/// Softmax cross-entropy of logits [.., C] with class labels, int64 [..], or class probabilities
/// [.., C], which get no gradient. Uses gallop's kernel if it supports them
/// (kernel/cross_entropy.h), otherwise LibTorch's operators in fp32 (fp64 for fp64 logits).
LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                      const LossOptions& options);

/// Like the above, for the output of a model. If the last GEMM is left to the loss and the logits
/// would need much memory, they are never stored (kernel/linear_cross_entropy.h).
LossSum cross_entropy(const Output& output, const at::Tensor& target, const LossOptions& options);

}  // namespace gallop::model::functional
