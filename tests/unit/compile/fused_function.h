#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/compile/executor.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {

/// A function's graph after all passes.
struct FusedFunction {
  KernelCompiler compiler;
  PassContext context{.compiler = compiler};
  Graph graph;

  /// `command` is the compiler's; passes in `off` do not run.
  FusedFunction(const Function& function, const std::vector<at::Tensor>& inputs,
                const std::string& command = "", const std::vector<std::string>& off = {})
      : compiler({.command = command}) {
    Recording recording = record(function, inputs);
    EXPECT_EQ(recording.refusal, "");
    graph = std::move(recording.graph);
    run_passes(graph, off, context);
  }

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const {
    return Executor(graph).run(inputs);
  }

  int64_t loops() const { return std::count_if(graph.nodes.begin(), graph.nodes.end(), is_loop); }
};

}  // namespace gallop::compile
