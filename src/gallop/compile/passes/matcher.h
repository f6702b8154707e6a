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

// Helpers of passes that match calls of LibTorch's operators and replace them by calls of kernels.
namespace gallop::compile::passes {

/// Nodes to remove, and nodes to insert, each before the node with the given current index.
struct Rewrite {
  std::vector<int64_t> removed;
  std::vector<std::pair<int64_t, Node>> added;
};

/// A graph with the producers and consumers of its tensors. Valid until nodes change; views and
/// buffers may be added. Indices of nodes may be kNone everywhere, which never matches.
class Matcher {
 public:
  explicit Matcher(Graph& graph) : graph_(graph), uses_(uses_of(graph)) {}

  const Node& node(int64_t index) const { return graph_.nodes[static_cast<size_t>(index)]; }
  const View& view(ViewId id) const { return graph_.views[static_cast<size_t>(id)]; }

  /// Whether it calls this operator, such as "aten::add.Tensor".
  bool is(int64_t index, std::string_view op) const;
  bool is_one_of(int64_t index, std::initializer_list<std::string_view> ops) const;

  /// The tensor argument, or kNone if it is none or not in a buffer.
  ViewId argument(int64_t index, size_t number) const;
  /// An argument that is not a tensor in a buffer.
  const c10::IValue& constant(int64_t index, size_t number) const;
  ViewId result(int64_t index, size_t number = 0) const;

  /// The node whose result `number` has the same elements in the same order as this tensor, and is
  /// not changed afterwards; else kNone.
  int64_t maker_of(ViewId tensor, size_t number = 0) const;

  /// The node that computes the value of which this is any view; else kNone.
  int64_t source_of(ViewId tensor) const;

  /// The nodes that read the tensor's buffer, in their order.
  std::vector<int64_t> readers_of(ViewId tensor) const;
  bool is_output(ViewId tensor) const;
  /// Whether the tensor's buffer may be removed with these nodes: it is a value and no output, and
  /// has no other readers.
  bool is_only_read_by(ViewId tensor, const std::vector<int64_t>& nodes) const;

  /// Whether the value that node `from` reads is unchanged at the position of node `to`. True for
  /// kNone.
  bool can_be_read_at(ViewId tensor, int64_t from, int64_t to) const;

  /// Whether no node strictly between these two accesses the tensor's buffer.
  bool is_untouched_between(ViewId tensor, int64_t from, int64_t to) const;

  /// A meta tensor of this layout and device, for questions about layouts.
  at::Tensor stand_in(ViewId id) const;

  ViewId intern(const View& view) { return graph_.intern(view); }
  /// A view of the same elements with these sizes. `tensor` must be contiguous.
  ViewId reshaped(ViewId tensor, std::vector<int64_t> sizes);
  /// A contiguous tensor in a new buffer, on the CPU or on the device of `beside`.
  ViewId fresh(std::vector<int64_t> sizes, at::ScalarType dtype, ViewId beside = kNone);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  const Uses& uses(ViewId tensor) const { return uses_[static_cast<size_t>(view(tensor).buffer)]; }

  Graph& graph_;
  std::vector<Uses> uses_;
};

/// Both operands if the node adds two tensors of the result's sizes without a factor.
std::optional<std::pair<ViewId, ViewId>> operands_of_sum(const Matcher& matcher, int64_t index);

/// Whether the node only casts a whole tensor, preserving its memory format.
bool is_plain_cast(const Matcher& matcher, int64_t index);

/// Whether the argument is the integer 1, such as a factor that changes nothing.
bool is_one(const Matcher& matcher, int64_t index, size_t number);

/// The fp32 tensor of which this one is a cast, if node `reader` can read it instead; else
/// `tensor`.
ViewId unconverted(const Matcher& matcher, ViewId tensor, int64_t reader);

/// The only reader of the node's result, if that is not an output and the reader's first argument;
/// else kNone.
int64_t only_reader_of(const Matcher& matcher, int64_t index);

/// Whether the node is the gradient of ReLU.
bool is_relu_backward(const Matcher& matcher, int64_t index);

/// The weight gradient of a linear layer, dy^T x.
struct WeightGradient {
  ViewId dy = kNone, x = kNone;
  ViewId weight = kNone;  ///< The result, which is contiguous.
};
std::optional<WeightGradient> weight_gradient(Matcher& matcher, int64_t index);

/// The only reader of the node's result, if it casts it to fp32; else kNone.
int64_t widening_of(const Matcher& matcher, int64_t index);

/// The node that sums this contiguous tensor over all rows, as for a bias gradient, in fp32 or
/// bf16; else kNone.
int64_t column_sums_of(const Matcher& matcher, ViewId tensor);

/// Whether both have the same memory layout: equal sizes and equal strides up to sizes of 1.
bool is_laid_out_alike(const View& a, const View& b);

/// Whether it is an image batch [N, C, H, W] in channels_last.
bool is_channels_last(const Matcher& matcher, ViewId tensor);

/// The number of rows of the last dimension: the product of the other sizes.
int64_t rows_of(const View& view);

Operand no_tensor();

/// Applies `match` to every node until it finds nothing more.
void rewrite_all(Graph& graph,
                 const std::function<std::optional<Rewrite>(Matcher&, int64_t)>& match);

}  // namespace gallop::compile::passes
