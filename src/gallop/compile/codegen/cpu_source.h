#pragma once

#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

/// Functions in C++ for the plan, of the types LoopBlock (named `symbol`), LoopColumns
/// (`symbol`_columns; only with column reductions) and LoopTotals (`symbol`_totals; only with
/// totals). Plans that differ in sizes and strides alone
/// have the same text and symbol, as long as strides of the last dimension are 0, 1 or neither
/// alike.
KernelSource cpu_source(const LoopPlan& plan);

/// What the texts include: the headers of kernel/cpu and of this folder, built into the program.
const std::string& cpu_prefix();

}  // namespace gallop::compile
