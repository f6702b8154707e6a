#pragma once

#include <string>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/codegen/cuda_plan.h"

namespace gallop::compile {

/// CUDA C++ for the plan: kernels named `symbol` and `symbol`_aligned (where the width is above 1;
/// for addresses that is_aligned() likes), and, to be run after one of the former, `symbol`_columns
/// (with column reductions) and `symbol`_totals (with totals). Each takes the slots of CudaSlots.
/// Plans that differ in sizes, strides and constants alone mostly have the same text.
KernelSource cuda_source(const CudaPlan& plan);

/// A header that is built into the program, for such texts. Throws InternalError where it is not.
std::string cuda_header(const std::string& path);

/// What the texts stand behind: loop_cuda.h and loop_cuda_reductions.h.
const std::string& cuda_prefix();

}  // namespace gallop::compile
