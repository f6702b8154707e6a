#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/codegen/loop_values.h"

namespace gallop::compile {

/// A program as it is computed: dimensions in the order of memory and as few as possible, in rows
/// that are cut into blocks. Everything but the numbers of sizes, strides and constants is form: it
/// alone decides the source.
struct LoopPlan {
  LoopProgram program;  ///< At least one dimension of rows and one within a row.
  std::vector<ValueTraits> values;
  std::vector<Level> stores;            ///< Of each output.
  std::vector<int32_t> row_reductions;  ///< Positions of expressions, in their order.
  std::vector<int32_t> column_reductions;
  std::vector<int32_t> totals;
  /// Sweeps over the row; a value of depth d is computed in any from d on.
  int sweeps = 0;
  /// Costly elements that a first sweep leaves for later ones, and that sweep.
  struct Kept {
    int32_t value;
    int sweep;
  };
  std::vector<Kept> kept;

  int64_t rows = 1, columns = 1;
  int64_t block_rows = 1, part_columns = 1;  ///< What one call of the kernel computes.
  int64_t blocks = 1, parts = 1;             ///< How many there are of these.
  double nanoseconds = 0;                    ///< Of such a call, very roughly.
};

LoopPlan plan(const LoopProgram& program);

/// Elements that the sweep reduces or stores: positions of expressions.
std::vector<int32_t> roots_of(const LoopPlan& plan, int sweep);

/// Which elements the sweep computes or reads from those kept, in the order of the list. Values for
/// all or a row that it needs are among them.
std::vector<bool> slice_of(const LoopPlan& plan, int sweep);

/// What stores of this level are made of, which come when all rows are done: kColumn or kTotal.
std::vector<bool> made_late(const LoopPlan& plan, Level level);

}  // namespace gallop::compile
