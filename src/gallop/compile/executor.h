#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Runs a graph, node by node, below autograd and autocast. Memory of a buffer is given back right
/// after its last use.
class Executor {
 public:
  explicit Executor(Graph graph);

  /// The inputs have the sizes, strides, formats and devices of the recorded ones. Throws
  /// InternalError where an operator makes a tensor of another layout than the graph says.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  const Graph& graph() const { return graph_; }

 private:
  void bind(const std::vector<at::Tensor>& inputs);
  void call(const Node& node);
  c10::IValue value_of(const Operand& operand);
  at::Tensor tensor_or_none(ViewId id);
  void take_results(const Node& node);
  void take_result(ViewId id, const at::Tensor& result, const Node& node);
  const at::Tensor& tensor(ViewId id);
  void clear();

  Graph graph_;
  std::vector<at::Tensor> bases_;              // One a buffer: any tensor in it.
  std::vector<int64_t> origins_;               // Where the buffer's element 0 lies in its storage.
  std::vector<at::Tensor> tensors_;            // One a view, made when first needed.
  std::vector<std::vector<ViewId>> views_of_;  // By buffer.
  std::vector<std::vector<BufferId>> dead_after_;  // By node.
  torch::jit::Stack stack_;
};

}  // namespace gallop::compile
