#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Builds a graph from calls as they are made. Tensors are classified by their memory: that of
/// arguments, that created by calls, and all other, which is state. A call that cannot be
/// represented sets a refusal, which makes the graph invalid.
class GraphBuilder {
 public:
  /// Adds an argument of the function.
  void add_input(const at::Tensor& input);
  /// Adds a result of the function, which may be undefined.
  void add_output(const at::Tensor& result);

  /// The node of a call with the arguments on top of the stack, without results.
  Node node_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  /// Adds the node of a call with its results on the stack, if it creates or changes anything.
  /// `known`: the number of buffers before the call; `call`: where it was made.
  void add(Node node, const torch::jit::Stack& stack, size_t known, RecordedCall call = {});

  /// The tensor's buffer; a new one of kState if it is unknown.
  BufferId buffer_of(const at::Tensor& tensor);
  /// The tensor's buffer; kNone if it is unknown.
  BufferId known_buffer_of(const at::Tensor& tensor) const;
  /// Associates the tensor's memory with this buffer, in addition to others.
  void name(const at::Tensor& tensor, BufferId buffer);

  void refuse(std::string reason);
  /// Why there is no graph; empty if there is one.
  const std::string& refusal() const { return refusal_; }

  const Graph& graph() const { return graph_; }
  Graph take();

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
  bool resolves_conjugate(Node& node);
  void append(Node node, RecordedCall call);
  void check_size_kept(const Node& node, const at::Tensor& written);

  Graph graph_;
  std::vector<RecordedCall> calls_;  // Calls of its nodes.
  std::string refusal_;
  std::unordered_map<Key, BufferId> buffer_of_;
  std::unordered_map<View, ViewId, ViewHash> view_ids_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> remembered_;
  std::vector<int64_t> origin_of_;  // The byte of its buffer at which an argument begins.
  std::vector<bool> filled_;        // Whether the buffer was written.
};

}  // namespace gallop::compile
