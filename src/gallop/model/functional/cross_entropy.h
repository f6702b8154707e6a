#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"
#include "gallop/model/output.h"

namespace gallop::model::functional {

struct LossSum {
  at::Tensor loss;     ///< Sum over all targets that count, without dimensions, with its gradient.
  at::Tensor correct;  ///< int64: rows whose first largest logit is the target's, where asked for.
};

struct LossOptions {
  kernel::CrossEntropyOptions targets{};
  bool count_correct = false;  ///< Only of classes.
};

/// Softmax cross-entropy of logits [.., C] against classes, int64 [..], or shares of classes
/// [.., C], which get no gradient. By gallop's kernel where it takes them
/// (kernel/cross_entropy.h), else by LibTorch's operators in fp32 (fp64 logits stay so).
LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                      const LossOptions& options);

/// The same of a model's output. Where the last product is not taken yet and its logits would need
/// much memory, they are never stored (kernel/linear_cross_entropy.h).
LossSum cross_entropy(const Output& output, const at::Tensor& target, const LossOptions& options);

}  // namespace gallop::model::functional
