#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/tensor_group.h"

namespace gallop::train {

/// While it is alive, losses on this thread that compare the samples of a batch see those of all
/// processes, each of which has its part of `rows`. The group must outlive the backward pass.
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

  /// Of this process's rows [N, D]: themselves if there is no scope. All processes call it alike,
  /// also without rows.
  static SharedRows of(const at::Tensor& own);
};

}  // namespace gallop::train
