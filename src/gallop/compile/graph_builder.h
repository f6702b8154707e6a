#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// A graph of calls while they are made. Tensors are told apart by their memory: that of arguments,
/// that which calls made, and all other, which is state. What cannot stand in a graph leaves a
/// refusal, and the graph is of no use from then on.
class GraphBuilder {
 public:
  /// Adds an argument of the function.
  void add_input(const at::Tensor& input);
  /// Adds a result of the function, which may be undefined.
  void add_output(const at::Tensor& result);

  /// The node of a call with these arguments, without results, those that lie on top of the stack.
  Node node_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  /// Adds the node of a call that returned what is on the stack, if it makes or changes anything.
  /// `known`: how many buffers there were before the call.
  void add(Node node, const torch::jit::Stack& stack, size_t known);

  /// The tensor's buffer; one of state where it has not been seen before.
  BufferId buffer_of(const at::Tensor& tensor);
  /// Likewise, kNone where it has not been seen.
  BufferId known_buffer_of(const at::Tensor& tensor) const;
  /// The tensor's memory is from now on that of this buffer as well.
  void name(const at::Tensor& tensor, BufferId buffer);

  void refuse(std::string reason);
  /// Why there is no graph; empty where there is one.
  const std::string& refusal() const { return refusal_; }

  const Graph& graph() const { return graph_; }
  Graph take() { return std::move(graph_); }

 private:
  using Key = const c10::StorageImpl*;
  struct ViewHash {
    size_t operator()(const View& view) const;
  };

  static Key key_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

  BufferId new_buffer(const at::Tensor& tensor);
  ViewId view_of(const at::Tensor& tensor);
  Operand operand_of(const c10::IValue& value);
  Operand result_of(const c10::IValue& value, size_t known);
  ViewId made(const at::Tensor& tensor, size_t known);
  void check_filled(ViewId view, const std::string& reader);
  void check_size_kept(const Node& node, const at::Tensor& written);

  Graph graph_;
  std::string refusal_;
  std::unordered_map<Key, BufferId> buffer_of_;
  std::unordered_map<View, ViewId, ViewHash> view_ids_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> remembered_;
  std::vector<int64_t> origin_of_;  // The byte of its buffer where an argument begins.
  std::vector<bool> filled_;        // Whether the buffer was written.
};

}  // namespace gallop::compile
