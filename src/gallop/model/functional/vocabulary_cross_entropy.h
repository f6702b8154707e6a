#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/model/functional/cross_entropy.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model::functional {

/// As cross_entropy() of logits whose last dimension, of `classes`, is divided among the processes
/// (loss_parallel of PyTorch), with class labels. The processes exchange five numbers for each row
/// in place of its logits. All have the same results.
LossSum vocabulary_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                          const LossOptions& options, int64_t classes,
                                          const TensorGroup& group);

}  // namespace gallop::model::functional
