#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/codegen/loop_values.h"

namespace gallop::compile {

/// How a program is computed: as few dimensions as possible in the order of memory, and rows split
/// into blocks. The source depends on everything in it except the values of sizes, strides and
/// constants.
struct LoopPlan {
  LoopProgram program;  ///< At least one dimension of rows and one within a row.
  std::vector<ValueTraits> values;
  std::vector<Level> stores;            ///< The level of each output.
  std::vector<int32_t> row_reductions;  ///< Indices of expressions, in their order.
  std::vector<int32_t> column_reductions;
  std::vector<int32_t> totals;
  /// Number of sweeps over the row; a value of depth d can be computed in any sweep from d on.
  int sweeps = 0;
  /// An expensive value that sweep `sweep` stores for later ones.
  struct Kept {
    int32_t value;
    int sweep;
  };
  std::vector<Kept> kept;

  int64_t rows = 1, columns = 1;
  int64_t block_rows = 1, part_columns = 1;  ///< Computed by one call of the kernel.
  int64_t blocks = 1, parts = 1;             ///< Number of blocks of rows, and of parts of a row.
  double nanoseconds = 0;                    ///< Duration of one call, a rough estimate.
};

LoopPlan plan(const LoopProgram& program);

/// Elements that the sweep reduces or stores, as indices of expressions.
std::vector<int32_t> roots_of(const LoopPlan& plan, int sweep);

/// Which elements the sweep computes or reads from kept ones, by expression. Includes scalars of
/// the loop or of a row that it needs.
std::vector<bool> slice_of(const LoopPlan& plan, int sweep);

/// The expressions for outputs of this level, kColumn or kTotal, which are computed after all rows.
std::vector<bool> made_late(const LoopPlan& plan, Level level);

}  // namespace gallop::compile
