#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// GEMMs of many rows with the weight of a linear layer, in bf16 by AMX tiles, set up by
/// GemmKernels<Bf16>::begin. All are null on machines without AMX. `inner` is the reduced
/// dimension and `outputs` the number of results, both multiples of 32.
struct LinearGemmKernels {
  static constexpr int64_t kRows = 64;     ///< Rows that are multiplied at once.
  static constexpr int64_t kColumns = 16;  ///< Outputs of a panel.
  static constexpr int64_t kInner = 256;   ///< Elements of a row that stay in the core's L1 cache.

  /// Packs panel `panel` of a weight [outputs, inner], or [inner, outputs] if not
  /// `transposed_weight`: 16 outputs times `inner` elements.
  void (*lay_panel)(const Matrix<const Bf16>& weight, bool transposed_weight, int64_t panel,
                    Bf16* to);
  /// y = x times the panels, for at most kRows rows; `next_rows` more of both follow in memory,
  /// which are prefetched. `rows_room` has kRows times the columns of x, `sums_room` kRows
  /// times the columns of y.
  void (*multiply)(const Matrix<const Bf16>& x, const Bf16* panels, int64_t next_rows,
                   Bf16* rows_room, float* sums_room, const Matrix<Bf16>& y);
};

}  // namespace gallop::kernel
