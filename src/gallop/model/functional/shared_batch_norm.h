#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/batch_norm.h"

namespace gallop::model::functional {

/// All-reduces (sums) an fp64 tensor in place over all processes that share a batch.
using SumOverAll = void (*)(const at::Tensor& tensor);

/// While it is alive, batch_norm() on this thread computes its statistics over a batch that is
/// shared by processes, of which this thread has a slice, possibly an empty one.
class SharedBatchNormScope {
 public:
  explicit SharedBatchNormScope(SumOverAll sum_over_all);
  ~SharedBatchNormScope();
  SharedBatchNormScope(const SharedBatchNormScope&) = delete;
  SharedBatchNormScope& operator=(const SharedBatchNormScope&) = delete;

  static bool is_there();

 private:
  SumOverAll outer_;
};

/// Batch norm in training with the statistics of all slices of the batch [N, C, ...]. The
/// gradients of weight and bias are those of this slice. Requires a scope, also during the
/// backward pass.
at::Tensor shared_batch_norm(const at::Tensor& x, const kernel::BatchNormParameters& parameters);

}  // namespace gallop::model::functional
