#pragma once

#include <string>

#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

// The text of single values in generated kernels; cpu_source.cpp defines the names they use.

/// The type of an array's elements, of one scalar, and of a vector of 16 elements.
const char* pointee(Format format);
const char* number_type(Format kind);
const char* vector_type(Format kind);

/// "Plus", "Larger" or "Smaller".
const char* kind_of_reduction(Op op);

/// The accumulator type of a block's total: wider than `kind` for sums of fp32.
const char* total_type(Op op, Format kind);

/// The last stride as far as the generated text depends on it: 0, 1, or 2 for any other.
int64_t last_stride(const LoopOperand& operand);

/// The expression of a scalar for the loop or for a row; arrays are named `base` and their index.
std::string number_text(const LoopPlan& plan, int32_t at, const char* base);

/// The name of a vector of 16 elements, or of a scalar broadcast to one.
std::string element_name(const LoopPlan& plan, int32_t at);

/// The expression of a vector of 16 elements.
std::string element_text(const LoopPlan& plan, int32_t at);

}  // namespace gallop::compile
