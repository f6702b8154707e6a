#pragma once

#include <vector>

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// For what a value is one number.
enum class Level : uint8_t {
  kAll,  ///< The whole loop.
  kRow,
  kElement,
  kColumn,  ///< A position in the row, known when all rows are done.
  kTotal,   ///< The whole loop, known when all rows are done.
};

struct ValueTraits {
  Format kind = Format::kFp32;  ///< fp32, fp64, int64 or bool.
  Level level = Level::kAll;
  /// How many sweeps over the row it needs to be done before.
  int depth = 0;
  /// Whether it does not change from row to row, so that it may meet column reductions.
  bool same_for_rows = true;
};

/// What `format` is within a program.
Format kind_of(Format format);

/// The values of a program. Throws InternalError as check() does.
std::vector<ValueTraits> analyze(const LoopProgram& program);

/// For what a store writes once: a row, an element, a column or all.
Level level_of(const LoopProgram& program, const Output& output,
               const std::vector<ValueTraits>& values);

}  // namespace gallop::compile
