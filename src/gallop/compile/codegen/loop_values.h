#pragma once

#include <vector>

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// The scope in which a value is one scalar.
enum class Level : uint8_t {
  kAll,  ///< The whole loop.
  kRow,
  kElement,
  kColumn,  ///< A position in the row, known after all rows.
  kTotal,   ///< The whole loop, known after all rows.
};

struct ValueTraits {
  Format kind = Format::kFp32;  ///< fp32, fp64, int64 or bool.
  Level level = Level::kAll;
  /// Number of sweeps over the row that must precede it.
  int depth = 0;
  /// Whether it is the same in all rows, so that it may be combined with column reductions.
  bool same_for_rows = true;
};

/// The data type of a value of this format within a program.
Format kind_of(Format format);

/// Which expressions in fp32 have values that rounding to a format, bf16 or fp16, never changes.
class ExactValues {
 public:
  explicit ExactValues(Format format) : format_(format) {}

  /// `at` is an expression of the program, of which each call sees the same or a longer version.
  bool contains(const LoopProgram& program, int32_t at);

 private:
  bool is_exact(const LoopProgram& program, const Expression& e) const;

  Format format_;
  std::vector<bool> known_;  // By expression.
};

/// The traits of each expression. Throws InternalError as check() does.
std::vector<ValueTraits> analyze(const LoopProgram& program);

/// The level at which an output is stored: once for each row, element, column or loop.
Level level_of(const LoopProgram& program, const Output& output,
               const std::vector<ValueTraits>& values);

}  // namespace gallop::compile
