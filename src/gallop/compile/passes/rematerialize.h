#pragma once

#include <cstdint>

#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// What recomputing may cost, and what it must bring.
struct RematerializeLimits {
  double most_time = 0.01;    ///< Share of the step's time, by its bytes and products, to be added.
  double least_saved = 0.10;  ///< Share of the planned memory: less is not worth the time.
};

/// Results of pointwise nodes that lie there from an early use to a late one while memory is at its
/// peak are computed once more before the late one, those first that save most for their time.
/// Leaves the graph as it is where the plan would not get smaller by `least_saved`. No bit changes.
void rematerialize(Graph& graph, const RematerializeLimits& limits);

}  // namespace gallop::compile::passes
