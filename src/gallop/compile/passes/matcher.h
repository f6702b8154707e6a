#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/graph.h"

// What the passes share that find calls of LibTorch's operators and put calls of kernels into their
// place.
namespace gallop::compile::passes {

/// Nodes that go, and nodes that come, each in front of the node that has this index now.
struct Rewrite {
  std::vector<int64_t> removed;
  std::vector<std::pair<int64_t, Node>> added;
};

/// A graph with who makes and who reads its tensors. Valid until nodes change; views and buffers
/// may be added. Indices of nodes may be kNone everywhere, which is never found to be anything.
class Matcher {
 public:
  explicit Matcher(Graph& graph) : graph_(graph), uses_(uses_of(graph)) {}

  const Node& node(int64_t index) const { return graph_.nodes[static_cast<size_t>(index)]; }
  const View& view(ViewId id) const { return graph_.views[static_cast<size_t>(id)]; }

  /// Whether it calls this operator, such as "aten::add.Tensor".
  bool is(int64_t index, std::string_view op) const;
  bool is_one_of(int64_t index, std::initializer_list<std::string_view> ops) const;

  /// The tensor given as an argument, or kNone where it is none or not in a buffer.
  ViewId argument(int64_t index, size_t number) const;
  /// An argument that is no tensor of a buffer.
  const c10::IValue& constant(int64_t index, size_t number) const;
  ViewId result(int64_t index, size_t number = 0) const;

  /// The node whose result `number` has the same elements in the same order as this tensor, which
  /// nothing changes after it; else kNone.
  int64_t maker_of(ViewId tensor, size_t number = 0) const;

  /// The node that makes the value that this is any view of; else kNone.
  int64_t source_of(ViewId tensor) const;

  /// The nodes that read the tensor's buffer, in their order.
  std::vector<int64_t> readers_of(ViewId tensor) const;
  bool is_output(ViewId tensor) const;
  /// Whether the tensor's buffer may vanish when these nodes go: it is a value and no output, and
  /// nothing else reads it.
  bool is_only_read_by(ViewId tensor, const std::vector<int64_t>& nodes) const;

  /// Whether what node `from` reads would be the same where node `to` stands. True for kNone.
  bool can_be_read_at(ViewId tensor, int64_t from, int64_t to) const;

  /// Whether no node strictly between these two reads or writes the tensor's buffer.
  bool is_untouched_between(ViewId tensor, int64_t from, int64_t to) const;

  /// A tensor of this layout and device without memory, for questions about layouts.
  at::Tensor stand_in(ViewId id) const;

  ViewId intern(const View& view) { return graph_.intern(view); }
  /// The same elements as a contiguous tensor of these sizes. `tensor` must be contiguous.
  ViewId reshaped(ViewId tensor, std::vector<int64_t> sizes);
  /// A contiguous tensor in a new buffer, on the CPU or where `beside` is.
  ViewId fresh(std::vector<int64_t> sizes, at::ScalarType dtype, ViewId beside = kNone);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  const Uses& uses(ViewId tensor) const { return uses_[static_cast<size_t>(view(tensor).buffer)]; }

  Graph& graph_;
  std::vector<Uses> uses_;
};

/// Both operands where the node adds two tensors of the result's sizes without a factor.
std::optional<std::pair<ViewId, ViewId>> operands_of_sum(const Matcher& matcher, int64_t index);

/// Whether the node only changes the format of a whole tensor, and the memory's order stays.
bool is_plain_cast(const Matcher& matcher, int64_t index);

/// Whether both lie in memory in one order: equal sizes and equal strides up to sizes of 1.
bool is_laid_out_alike(const View& a, const View& b);

/// Rows of the last dimension: the product of the others.
int64_t rows_of(const View& view);

Operand no_tensor();

/// Applies `match` to every node, until nothing is found any more.
void rewrite_all(Graph& graph,
                 const std::function<std::optional<Rewrite>(Matcher&, int64_t)>& match);

}  // namespace gallop::compile::passes
