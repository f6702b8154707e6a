#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/compile/call_layers.h"

namespace gallop::compile {

struct Graph;

/// Bytes of the buffers that a graph makes, by what they are for.
struct MemoryUse {
  int64_t activations = 0;  ///< Made in forward and read in backward.
  int64_t gradients = 0;    ///< Made in backward and read in the optimizer.
  int64_t temporaries = 0;  ///< Others.

  int64_t total() const { return activations + gradients + temporaries; }
};

/// The buffers of one layer that are in use at the peak.
struct LayerMemory {
  std::string layer;  ///< Empty if unknown.
  MemoryUse use;
};

/// What is in use while each node runs.
struct MemoryTimeline {
  std::vector<MemoryUse> at_node;
  int64_t peak = -1;                 ///< The node with the highest total; -1 if there are no nodes.
  std::vector<LayerMemory> at_peak;  ///< The largest first.
};

MemoryTimeline memory_timeline(const Graph& graph, const CallLayers& layers);

}  // namespace gallop::compile
