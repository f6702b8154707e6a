#pragma once

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// The same loop with dimensions in the order of memory (within rows and among them; all together
/// if nothing is reduced), adjacent ones merged where strides permit, and none of size 1 except
/// one of rows and one within a row. Reductions may be computed in another order.
LoopProgram in_memory_order(const LoopProgram& program);

}  // namespace gallop::compile
