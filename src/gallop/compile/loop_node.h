#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/compile/codegen/loop_kernel.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// What a loop writes: one of the tensors that it creates, or a part of it.
struct LoopOutput {
  size_t result = 0;
  View view;  ///< Of the result's memory.
};

/// A generated loop as called by a node.
struct GeneratedLoop {
  std::unique_ptr<LoopKernel> kernel;
  std::vector<View> results{};        ///< Layouts; the buffers are not used.
  std::vector<LoopOutput> outputs{};  ///< Of the kernel.
  /// Names of the operators that it replaces, in their order, for display.
  std::vector<std::string> parts{};
};

/// A call of the operator "gallop::loop", which creates new tensors from `inputs`. `results` are
/// views of complete buffers.
Node loop_node(std::shared_ptr<const GeneratedLoop> loop, std::vector<ViewId> inputs,
               std::vector<ViewId> results);

bool is_loop(const Node& node);

}  // namespace gallop::compile
