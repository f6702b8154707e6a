#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/base/error.h"
#include "gallop/compile/arena.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/kept_generators.h"

namespace gallop::compile {

/// An operator returned a tensor of another layout than when the graph was recorded.
class LayoutMismatch final : public InternalError {
 public:
  using InternalError::InternalError;
};

/// Runs a graph, node by node, below autograd and autocast. A buffer is released right after its
/// last use; on the CPU temporary buffers lie at planned offsets.
class Executor {
 public:
  /// `arena` may be shared with other executors, one of which runs at a time; without it, or if it
  /// is too small, memory comes from LibTorch's allocator.
  explicit Executor(Graph graph, std::shared_ptr<Arena> arena = nullptr);

  /// The inputs must have the sizes, strides, data types and devices of the recorded ones. Throws
  /// LayoutMismatch in the first run, which then has no effect on state and inputs; InternalError
  /// later, or if a snapshot of what the first run writes would be large.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  /// As run(), and returns the seconds of each node, including allocation and release of its
  /// memory. Devices other than the CPU are synchronized after each node.
  std::vector<double> time(const std::vector<at::Tensor>& inputs);

  /// Called with each buffer that a node has just written, as one of the tensors in it.
  using Observer = std::function<void(const Node& node, const Buffer& buffer, const at::Tensor&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// Whether the last run has called, or begun to call, a node that changes this state, other than
  /// collectives.
  bool has_changed(const at::Tensor& state) const;
  /// Whether a run has reached the end.
  bool has_finished() const { return has_finished_; }

  const Graph& graph() const { return graph_; }

  /// Bytes of the block of temporaries; 0 if there is no plan, or an operator was seen to keep
  /// memory that it was given.
  int64_t planned_bytes() const { return arena_ ? plan_bytes_ : 0; }

 private:
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, std::vector<double>* seconds);
  void bind(const std::vector<at::Tensor>& inputs);
  void run_nodes(std::vector<double>* seconds);
  using Snapshot = std::vector<std::pair<at::Tensor, at::Tensor>>;  // Tensors and their copies.
  std::optional<Snapshot> snapshot();
  void keep_generators(KeptGenerators& generators) const;
  void call(const Node& node);
  c10::IValue value_of(const Operand& operand);
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
  bool has_finished_ = false;
  torch::jit::Stack stack_;
  Observer observer_;
};

}  // namespace gallop::compile
