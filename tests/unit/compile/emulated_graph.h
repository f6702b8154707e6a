#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// What a graph that was recorded on the CPU computes where its loops are kernels for a GPU that
/// run on the CPU, and its other nodes LibTorch's operators there.
struct EmulatedRun {
  std::vector<at::Tensor> outputs;
  int64_t loops = 0;
  int64_t others = 0;  ///< Nodes outside of loops.
};
EmulatedRun run_emulated(const Graph& graph, const std::vector<at::Tensor>& inputs,
                         KernelCompiler& compiler);

}  // namespace gallop::compile
