#pragma once

#include <optional>
#include <vector>

#include "gallop/compile/codegen/loop_program.h"
#include "gallop/compile/passes/loop_space.h"

namespace gallop::compile::passes {

/// A group as a loop, with the tensors that it reads and makes.
struct FusedLoop {
  LoopProgram program;
  std::vector<ViewId> inputs, results;
};

/// The loop of a group that computes what its nodes do; nothing where none can, or where LibTorch's
/// operators are faster one by one.
std::optional<FusedLoop> fused_loop(const Graph& graph, const std::vector<Uses>& uses,
                                    const Group& group);

}  // namespace gallop::compile::passes
