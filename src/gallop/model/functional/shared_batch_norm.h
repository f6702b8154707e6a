#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/batch_norm.h"

namespace gallop::model::functional {

/// Replaces what the tensor holds, fp64, by the sum over all who share a batch.
using SumOverAll = void (*)(const at::Tensor& tensor);

/// While it lives, batch_norm() of this thread takes its statistics of a batch that is shared, of
/// which this thread has a part, or nothing: then of samples that are not there.
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

/// Batch norm in training by the statistics of all parts of the batch [N, C, ...], in whose scope
/// it is. The gradients of weight and bias are this part's. The backward pass must be in the scope,
/// too.
at::Tensor shared_batch_norm(const at::Tensor& x, const kernel::BatchNormParameters& parameters);

}  // namespace gallop::model::functional
