#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/compile/codegen/loop_kernel.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// A generated loop as a node calls it.
struct GeneratedLoop {
  std::unique_ptr<LoopKernel> kernel;
  std::vector<View> results;  ///< Layouts; the buffers mean nothing.
  /// Names of the operators that it takes the place of, in their order; for people.
  std::vector<std::string> parts{};
};

/// The call of the operator "gallop::loop", which makes new tensors from `inputs`. `results` are
/// views that are the whole of their buffers.
Node loop_node(std::shared_ptr<const GeneratedLoop> loop, std::vector<ViewId> inputs,
               std::vector<ViewId> results);

bool is_loop(const Node& node);

}  // namespace gallop::compile
