#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// When a buffer is in use: from the node that makes it to its last user, both included.
struct Lifetime {
  int64_t first = kNone, last = kNone;
};

/// Of every buffer; kNone where no node touches it. Those of results end with the graph.
std::vector<Lifetime> lifetimes_of(const Graph& graph);

/// Where the temporary buffers of a graph lie in one block of memory, so that buffers in use at the
/// same time do not overlap.
struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;  ///< Of offsets, in bytes.

  std::vector<int64_t> offsets;  ///< By buffer; kNone for those that are not part of it.
  int64_t bytes = 0;             ///< Of the whole block.
  int64_t most_in_use = 0;       ///< At any one time: no plan needs less.
};

/// Plans the temporaries on the CPU, other than results and what collectives read and write.
/// `margin` bytes before each buffer are kept free. The largest is placed first, each in the
/// smallest gap that holds it (Pisarchyk and Lee, "Efficient memory management for deep neural net
/// inference", 2020).
MemoryPlan plan_memory(const Graph& graph, int64_t margin);

}  // namespace gallop::compile
