#pragma once

#include <cstdint>
#include <vector>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// The nodes that write and read a buffer, as indices in their order.
struct Uses {
  std::vector<int64_t> writers;  ///< The first writer of a temporary buffer creates it.
  std::vector<int64_t> readers;
  bool is_output = false;
};

/// The uses of every buffer.
std::vector<Uses> uses_of(const Graph& graph);

/// How a node accesses a buffer.
struct Touch {
  BufferId buffer = kNone;
  bool reads = false, writes = false;
};

/// The accesses of every node, in their order. A collective reads until it is waited for, so that
/// its wait accesses the same buffers.
std::vector<std::vector<Touch>> touches_of(const Graph& graph);

/// Whether a tensor that node `from` reads has the same contents at node `to`, or the other way
/// round: no node from the first of them on writes its buffer before the last.
bool is_unchanged_between(const Uses& uses, int64_t from, int64_t to);

/// Whether the buffer's contents never change once they are computed: a temporary that one node
/// writes.
bool is_value(const Graph& graph, const std::vector<Uses>& uses, BufferId buffer);

/// Whether the graph has tensors on a GPU.
bool is_on_gpu(const Graph& graph);

/// Whether a call has no effect but its results, and the same results for the same arguments.
bool is_pure(const Node& node);

/// Whether the view covers every element of its buffer, each once.
bool is_whole(const Graph& graph, ViewId view);

/// Whether both have the same elements in the same order when read row by row, so that a kernel can
/// take either: equal sizes and strides up to sizes of 1, or both contiguous.
bool same_elements(const Graph& graph, ViewId a, ViewId b);
bool is_contiguous(const View& view);

/// The transpose of a matrix; other views are returned unchanged.
View transposed(View view);

/// Removes nodes, keeping the order of the others.
void remove_nodes(Graph& graph, const std::vector<bool>& removed);

/// Removes views and buffers that no node, input or output uses, and merges equal views.
void compact(Graph& graph);

/// The layouts of an operator's results for its arguments, inferred with meta tensors; empty if
/// that is not possible. The views have no buffer.
std::vector<View> result_layouts(const Graph& graph, const Node& node);

}  // namespace gallop::compile
