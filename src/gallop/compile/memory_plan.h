#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// The lifetime of a buffer: from the node that creates it to its last user, both included.
struct Lifetime {
  int64_t first = kNone, last = kNone;
};

/// The lifetime of every buffer; kNone if no node accesses it. Those of results end with the graph.
std::vector<Lifetime> lifetimes_of(const Graph& graph);

/// Offsets of the temporary buffers of a graph in one block of memory, so that buffers in use at
/// the same time do not overlap.
struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;  ///< Of offsets, in bytes.

  std::vector<int64_t> offsets;  ///< By buffer; kNone for those outside of the block.
  int64_t bytes = 0;             ///< Of the whole block.
  int64_t most_in_use = 0;       ///< Peak memory: a lower bound of any plan.
};

/// Plans the temporaries on the CPU, except results and buffers that collectives read and write.
/// `margin` bytes before each buffer are kept free. The largest is placed first, each in the
/// smallest gap that holds it (Pisarchyk and Lee, "Efficient memory management for deep neural net
/// inference", 2020).
MemoryPlan plan_memory(const Graph& graph, int64_t margin);

}  // namespace gallop::compile
