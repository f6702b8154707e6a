#pragma once

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// The operand types of an operation.
enum class Domain : uint8_t {
  kOwn,       ///< Specific to the operation: inputs, constants, casts, select.
  kFloating,  ///< fp32 or fp64; returns the same.
  kNumber,    ///< fp32, fp64 or integers; returns the same.
  kCompare,   ///< Any two of one data type; returns a bool.
  kOrder,     ///< Numbers of one data type; returns a bool.
  kLogic,     ///< bools.
};

struct OpTraits {
  Op op{};
  const char* name = nullptr;  ///< "add"; generated code calls op_add.
  int arity = 0;
  Domain domain{};
  /// Approximate cycles for 16 elements of fp32; if small, memory bandwidth dominates.
  int cycles = 0;
  bool vectorized = true;  ///< For fp32; other types are computed lane by lane.
};

const OpTraits& traits_of(Op op);

inline bool is_row_reduction(Op op) { return op >= Op::kRowSum && op <= Op::kRowMin; }
inline bool is_column_reduction(Op op) { return op >= Op::kColumnSum && op <= Op::kColumnMin; }
inline bool is_total(Op op) { return op >= Op::kTotalSum; }
inline bool is_reduction(Op op) { return op >= Op::kRowSum; }

}  // namespace gallop::compile
