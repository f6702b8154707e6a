#pragma once

#include <cstdint>

namespace gallop::compile {

/// What a generated kernel is given; also compiled into each of them.
struct LoopArguments {
  const void* const* inputs;
  void* const* outputs;
  const int64_t* sizes;    ///< Of the loop as the plan has it, outermost first.
  const int64_t* strides;  ///< One for each dimension: of all inputs, then of all outputs.
  const double* numbers;   ///< Of constants, in the order of the expressions.
  /// Blocks of each column reduction, [blocks][columns]; then of each total, [blocks][parts].
  void* const* totals;
  int64_t columns, blocks;      ///< Positions in a row; blocks of rows.
  int64_t part_columns, parts;  ///< Positions in a part of a row; parts.
};

/// Computes rows [row, row_end), which are a block, or of them the positions [column, column_end).
/// `scratch` has the thread's own slots of 8 bytes for each of these positions.
using LoopBlock = void (*)(const LoopArguments*, int64_t block, int64_t row, int64_t row_end,
                           int64_t column, int64_t column_end, void* scratch);
/// Adds up the blocks of column reductions, and stores what depends on them.
using LoopColumns = void (*)(const LoopArguments*, int64_t column, int64_t column_end);
/// Joins the blocks and parts of totals, and stores what depends on them.
using LoopTotals = void (*)(const LoopArguments*);

}  // namespace gallop::compile
