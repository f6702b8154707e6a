#pragma once

#include <cstdint>

#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// Limits of the cost and benefit of recomputation.
struct RematerializeLimits {
  double most_time = 0.01;    ///< Maximum additional fraction of the step's time, estimated by
                              ///< bytes and GEMM operations.
  double least_saved = 0.10;  ///< Minimum fraction of the planned memory to save.
};

/// Recomputes results of pointwise nodes before a late use if they would be live from an early one
/// while memory is at its peak, in the order of memory saved per time. Leaves the graph unchanged
/// if the plan would not shrink by `least_saved`. Changes no bit.
void rematerialize(Graph& graph, const RematerializeLimits& limits);

}  // namespace gallop::compile::passes
