#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/arena.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Runs a graph, node by node, below autograd and autocast. A buffer is given back right after its
/// last use; on the CPU the temporary ones lie at planned places.
class Executor {
 public:
  /// `arena` may be shared with other executors of which one runs at a time; without it, or where
  /// it is too small, memory comes from LibTorch's allocator.
  explicit Executor(Graph graph, std::shared_ptr<Arena> arena = nullptr);

  /// The inputs have the sizes, strides, formats and devices of the recorded ones. Throws
  /// InternalError where an operator makes a tensor of another layout than the graph says.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  /// Does what run() does and returns the seconds that each node took, with what it takes to make
  /// and free its memory. A device other than the CPU is waited for after each.
  std::vector<double> time(const std::vector<at::Tensor>& inputs);

  /// Is told each buffer that a node has just written, by one of the tensors in it.
  using Observer = std::function<void(const Node& node, const Buffer& buffer, const at::Tensor&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// Whether the last run has called, or begun to, a node that changes this state.
  bool has_changed(const at::Tensor& state) const;

  const Graph& graph() const { return graph_; }

  /// Of the block of temporaries; 0 where there is no plan, also since an operator was seen to keep
  /// memory that it was given.
  int64_t planned_bytes() const { return arena_ ? plan_bytes_ : 0; }

 private:
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, std::vector<double>* seconds);
  void bind(const std::vector<at::Tensor>& inputs);
  void run_nodes(std::vector<double>* seconds);
  void call(const Node& node);
  c10::IValue value_of(const Operand& operand);
  at::Tensor tensor_or_none(ViewId id);
  void take_results(const Node& node);
  void take_result(ViewId id, const at::Tensor& result, const Node& node);
  const at::Tensor& tensor(ViewId id);
  at::Tensor result(ViewId id);
  void free_dead(size_t node);
  void tell(const Node& node);
  void clear();

  void plan();
  void check_placed(size_t node);
  void drop_plan();

  Graph graph_;
  std::vector<at::Tensor> bases_;                  // One a buffer: any tensor in it.
  std::vector<int64_t> origins_;                   // The byte of its storage where a buffer begins.
  std::vector<at::Tensor> tensors_;                // One a view, made when first needed.
  std::vector<std::vector<ViewId>> views_of_;      // By buffer.
  std::vector<std::vector<BufferId>> dead_after_;  // By node.

  std::shared_ptr<Arena> arena_;
  int64_t plan_bytes_ = 0;
  std::vector<std::vector<Arena::Block>> made_at_;  // By node.
  size_t called_ = 0;                               // Nodes of the last run.
  torch::jit::Stack stack_;
  Observer observer_;
};

}  // namespace gallop::compile
