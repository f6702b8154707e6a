#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "gallop/compile/analysis.h"
#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/passes/reductions.h"

namespace gallop::compile::passes {

/// Nodes to be fused into one loop, at the position of the last of them.
using Group = std::set<int64_t>;

/// The iteration space of a group's loop, and the level of each node's result in it. Tensors whose
/// sizes are products of others' ([a * b, c] and [a, b, c]) share one space.
struct LoopSpace {
  std::vector<int64_t> sizes;  ///< As in the largest tensors, outermost first; none is 1.
  std::vector<bool> in_row;    ///< Dimensions that form a row; none without reductions of rows.
  std::map<int64_t, Level> levels;  ///< Of nodes: kElement, kRow, kColumn or kTotal.

  /// The strides, along all dimensions, of a tensor of this level that is broadcast to `wanted`;
  /// nothing if its sizes do not match the level.
  std::optional<std::vector<int64_t>> strides_of(const View& view,
                                                 const std::vector<int64_t>& wanted,
                                                 Level level) const;
};

/// The sizes over which the node iterates: those of its result, or those that it reduces.
std::vector<int64_t> sizes_of(const Graph& graph, const Node& node);

/// The level at which the node of this group reads its tensors.
Level level_read(const Graph& graph, const LoopSpace& space, int64_t node);

/// The node of the group that computes the value of the view, or kNone.
int64_t maker_within(const Graph& graph, const std::vector<Uses>& uses, const Group& group,
                     ViewId view);

/// The ways to compute the group in one loop: with reductions as rows, and as columns. None if one
/// loop cannot compute it.
std::vector<LoopSpace> spaces_of(const Graph& graph, const std::vector<Uses>& uses,
                                 const Group& group);

}  // namespace gallop::compile::passes
