#pragma once

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// What an operation takes.
enum class Domain : uint8_t {
  kOwn,       ///< Says so itself: inputs, constants, casts, select.
  kFloating,  ///< fp32 or fp64; gives the same.
  kNumber,    ///< fp32, fp64 or integers; gives the same.
  kCompare,   ///< Any two of one kind; gives a bool.
  kOrder,     ///< Numbers of one kind; gives a bool.
  kLogic,     ///< bools.
};

struct OpTraits {
  Op op{};
  const char* name = nullptr;  ///< "add"; generated code calls op_add.
  int arity = 0;
  Domain domain{};
  /// Roughly the cycles for 16 numbers of fp32; less for few sweeps than for memory.
  int cycles = 0;
  bool vectorized = true;  ///< For fp32; others go lane by lane.
};

const OpTraits& traits_of(Op op);

inline bool is_row_reduction(Op op) { return op >= Op::kRowSum && op <= Op::kRowMin; }
inline bool is_column_reduction(Op op) { return op >= Op::kColumnSum && op <= Op::kColumnMin; }
inline bool is_total(Op op) { return op >= Op::kTotalSum; }
inline bool is_reduction(Op op) { return op >= Op::kRowSum; }

}  // namespace gallop::compile
