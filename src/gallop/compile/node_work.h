#pragma once

#include <c10/core/ScalarType.h>

namespace gallop::compile {

struct Graph;
struct Node;

/// The work of a node.
struct NodeWork {
  /// FLOPs of GEMMs, convolutions, attention and recurrent layers, as PyTorch counts them
  /// (torch.utils.flop_counter): a multiply-add counts as two. Backward does not count what it
  /// recomputes.
  double flops = 0;
  /// Those that no implementation can leave out: without products with the padding of a
  /// convolution, and with what a causal mask hides.
  double needed_flops = 0;
  c10::ScalarType format = c10::kFloat;  ///< Of the factors, if there are any FLOPs.
  double bytes = 0;  ///< Of the elements that it reads and writes, each tensor once.
};

NodeWork work_of(const Graph& graph, const Node& node);

}  // namespace gallop::compile
