#pragma once

#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

/// C++ functions for the plan, of the types LoopBlock (named `symbol`), LoopColumns
/// (`symbol`_columns; only with column reductions) and LoopTotals (`symbol`_totals; only with
/// totals). Plans that differ only in sizes and strides
/// have the same text and symbol if each stride of the last dimension is in the same class: 0, 1 or
/// other.
KernelSource cpu_source(const LoopPlan& plan);

/// The common includes of the texts: the headers of kernel/cpu and of this folder, embedded in it.
const std::string& cpu_prefix();

}  // namespace gallop::compile
