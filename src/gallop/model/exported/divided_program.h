#pragma once

#include <cstdint>

#include "gallop/model/exported/tensor_parallel_plan.h"

namespace gallop::model::exported {

struct DividedProgram {
  Program program;              ///< What each process runs with its parts of the parameters.
  int64_t classes_divided = 0;  ///< If each has the logits of some classes: the number of all.
};

/// Divides a program by the plan of another one for the same parameters. Throws UsageError if a
/// node needs whole tensors.
DividedProgram divide(const Program& program, const TensorParallelPlan& plan,
                      const TensorParallelOptions& options);

}  // namespace gallop::model::exported
