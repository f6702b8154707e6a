#pragma once

#include <string>

#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

// The texts of single values in generated kernels; cpu_source.cpp has the names they use.

/// The type of an array's elements, of one number, and of 16 numbers.
const char* pointee(Format format);
const char* number_type(Format kind);
const char* vector_type(Format kind);

/// "Plus", "Larger" or "Smaller".
const char* kind_of_reduction(Op op);

/// The type of a total of a block: wider than its kind for sums of fp32.
const char* total_type(Op op, Format kind);

/// 0, 1 or 2 for any other: what the text knows of an operand's last stride.
int64_t last_stride(const LoopOperand& operand);

/// The right side of a value for all or for a row, from arrays that are called `base` and a number.
std::string number_text(const LoopPlan& plan, int32_t at, const char* base);

/// The name of 16 elements, or of a number spread to them.
std::string element_name(const LoopPlan& plan, int32_t at);

/// The right side of 16 elements.
std::string element_text(const LoopPlan& plan, int32_t at);

}  // namespace gallop::compile
