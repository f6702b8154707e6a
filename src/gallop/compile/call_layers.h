#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/compile/graph_names.h"

namespace gallop::compile {

struct Graph;
struct Node;

/// The part of the step that a node belongs to, or one of several.
struct NodePlace {
  std::string phase;  ///< "forward", "backward", "optimizer"; empty if unknown.
  std::string layer;  ///< "layer1.0.conv1", "loss"; empty if unknown, as in the optimizer.
  double share = 1;   ///< Of the recorded calls that the node does the work of.
};

/// Tells the layers of nodes from the calls that were recorded: a call belongs to the layer of its
/// TraceSpan, or to that whose weights it reads, or to that of the tensors that it reads; a call in
/// backward belongs to the layer of the call whose gradient it computes.
class CallLayers {
 public:
  CallLayers(const Graph& graph, const GraphNames& names);

  /// The places of a node, the largest share first; empty if it has no origins.
  std::vector<NodePlace> places_of(const Node& node) const;

 private:
  struct Place {
    std::string phase, layer;
  };
  std::vector<Place> places_;  // By call.
};

}  // namespace gallop::compile
