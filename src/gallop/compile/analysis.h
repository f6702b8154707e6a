#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Who touches a buffer, as indices of nodes in their order.
struct Uses {
  std::vector<int64_t> writers;  ///< The first of a temporary buffer's makes it.
  std::vector<int64_t> readers;
  bool is_output = false;
};

/// Of every buffer.
std::vector<Uses> uses_of(const Graph& graph);

/// How a node touches a buffer.
struct Touch {
  BufferId buffer = kNone;
  bool reads = false, writes = false;
};

/// Of every node, in their order. A collective reads until it is waited for: the wait has its
/// buffers too.
std::vector<std::vector<Touch>> touches_of(const Graph& graph);

/// Whether the buffer's contents are there for good once it is made: a temporary that one node
/// writes.
bool is_value(const Graph& graph, const std::vector<Uses>& uses, BufferId buffer);

/// Whether a call has no effect but its results, and the same results for the same arguments.
bool is_pure(const Node& node);

/// Whether the view has every element of its buffer, each once.
bool is_whole(const Graph& graph, ViewId view);

/// Whether both have the same elements in the same order when read row by row, so that one kernel
/// can take either: equal sizes and strides up to sizes of 1, or both contiguous.
bool same_elements(const Graph& graph, ViewId a, ViewId b);
bool is_contiguous(const View& view);

/// A matrix with rows for columns; anything else as it is.
View transposed(View view);

/// Drops nodes, keeping the order of the others.
void remove_nodes(Graph& graph, const std::vector<bool>& removed);

/// Drops what no node, input or output names any more, and makes equal views one.
void compact(Graph& graph);

/// Layouts that an operator gives its results for such arguments, tried on tensors without memory;
/// empty where it cannot be tried. The views have no buffer.
std::vector<View> result_layouts(const Graph& graph, const Node& node);

}  // namespace gallop::compile
