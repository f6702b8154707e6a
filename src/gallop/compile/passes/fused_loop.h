#pragma once

#include <optional>
#include <vector>

#include "gallop/compile/codegen/loop_program.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes/loop_space.h"

namespace gallop::compile::passes {

/// Whether the node may be part of a loop.
bool may_be_in_loop(const Graph& graph, const Node& node);

/// The loop of a group of nodes, with its input and output tensors.
struct FusedLoop {
  LoopProgram program;
  std::vector<ViewId> inputs, results;
  std::vector<LoopOutput> outputs;  ///< Of the program, as parts of results.
};

/// The loop that computes the nodes of a group; nothing if there is none, or if LibTorch's separate
/// operators are faster.
std::optional<FusedLoop> fused_loop(const Graph& graph, const std::vector<Uses>& uses,
                                    const Group& group);

}  // namespace gallop::compile::passes
