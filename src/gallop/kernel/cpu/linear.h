#pragma once

#include "gallop/kernel/cpu/gemm.h"
#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// What linear() does besides products and their layouts.
template <typename Number>
struct LinearKernels {
  /// y = the transposed of `from`, which is padded, + bias, then ReLU. `bias` may be null.
  void (*finish)(const float* from, int64_t from_stride, const float* bias, bool relu,
                 const AnyMatrix& y);
  /// dz = dy where y > 0, else 0; or dy where y has no data. dz has `padded_rows` and as many
  /// columns as dy, padded, in rows `stride` apart. `sums`, unless null, becomes dz's column sums.
  void (*gradient)(const AnyMatrix& dy, const AnyMatrix& y, Number* dz, int64_t padded_rows,
                   int64_t stride, float* sums);
  void (*write)(const float* from, int64_t from_stride, const AnyMatrix& to);
};

}  // namespace gallop::kernel
