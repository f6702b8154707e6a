#pragma once

#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/cuda_plan.h"

namespace gallop::compile {

/// CUDA C++ for the plan: kernels named `symbol` and `symbol`_aligned (if the width is above 1; for
/// addresses that is_aligned() accepts), and, to be run after one of the former, `symbol`_columns
/// (with column reductions) and `symbol`_totals (with totals). Each takes the slots of CudaSlots.
/// Plans that differ only in sizes, strides and constants mostly have the same text.
KernelSource cuda_source(const CudaPlan& plan);

/// The text of an embedded header. Throws InternalError if there is none at this path.
std::string cuda_header(const std::string& path);

/// The common prefix of the texts: loop_cuda.h and loop_cuda_reductions.h.
const std::string& cuda_prefix();

}  // namespace gallop::compile
