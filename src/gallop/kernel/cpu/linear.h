#pragma once

#include "gallop/kernel/cpu/gemm.h"
#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// The steps of linear() other than GEMMs and their layouts.
template <typename Number>
struct LinearKernels {
  /// y = from^T + bias, then ReLU, where `from` is padded. `bias` may be null.
  void (*finish)(const float* from, int64_t from_stride, const float* bias, bool relu,
                 const AnyMatrix& y);
  /// dz = dy where y > 0, else 0; or dy if y has no data. dz has `padded_rows` and as many
  /// columns as dy, padded, in rows `stride` apart. Writes dz's column sums to `sums` unless null.
  void (*gradient)(const AnyMatrix& dy, const AnyMatrix& y, Number* dz, int64_t padded_rows,
                   int64_t stride, float* sums);
  void (*write)(const float* from, int64_t from_stride, const AnyMatrix& to);
};

}  // namespace gallop::kernel
