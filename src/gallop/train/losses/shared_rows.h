#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/tensor_group.h"

namespace gallop::train {

/// During its lifetime, losses on this thread that compare the samples of a batch use the samples
/// of all processes; each process has a part of the `rows` rows. The group must outlive the
/// backward pass.
class SharedRowsScope {
 public:
  SharedRowsScope(const TensorGroup& group, int64_t rows);
  ~SharedRowsScope();
  SharedRowsScope(const SharedRowsScope&) = delete;
  SharedRowsScope& operator=(const SharedRowsScope&) = delete;

 private:
  const SharedRowsScope* outer_;
  const TensorGroup& group_;
  int64_t rows_;

  friend struct SharedRows;
};

/// The rows of a whole batch.
struct SharedRows {
  at::Tensor rows;        ///< [R, D], with a gradient in the process that has the row.
  at::Tensor is_missing;  ///< Bool [R]: samples that were skipped; undefined if there are none.
  int64_t first = 0;      ///< The place of this process's first row.

  /// Gathers the rows [N, D] of all processes; without a scope, returns `own`. All processes must
  /// call it equally often, also those without rows.
  static SharedRows of(const at::Tensor& own);
};

}  // namespace gallop::train
