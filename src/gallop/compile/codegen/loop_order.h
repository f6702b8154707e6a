#pragma once

#include "gallop/compile/codegen/loop_program.h"

namespace gallop::compile {

/// The same loop with dimensions in the order of memory (within rows and among them; all of them
/// where nothing is reduced), neighbors joined where no operand can tell, and none of size 1 but
/// for one of rows and one within a row. Reductions may add in another order.
LoopProgram in_memory_order(const LoopProgram& program);

}  // namespace gallop::compile
