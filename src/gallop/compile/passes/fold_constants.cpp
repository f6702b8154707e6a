#include <algorithm>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/operand_value.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/tensor_in.h"

namespace gallop::compile::passes {

namespace {

// The most memory that constants of a graph may occupy.
constexpr int64_t kMostBytes = int64_t{64} << 20;

class Folding {
 public:
  explicit Folding(Graph& graph)
      : graph_(graph),
        uses_(uses_of(graph)),
        makers_(graph.buffers.size(), kNone),
        values_(graph.buffers.size()) {}

  void run() {
    std::vector<bool> is_constant(graph_.nodes.size()), folded(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      is_constant[i] = can_be_folded(graph_.nodes[i]);
      if (!is_constant[i]) continue;
      for (const Operand& result : graph_.nodes[i].results) {
        for (const ViewId view : result.views) {
          if (view != kNone) makers_[buffer_of(view)] = static_cast<int64_t>(i);
        }
      }
    }
    // Those that only fill memory, such as arange, cost no more than to keep their results.
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      folded[i] = is_constant[i] && reads_tensors(graph_.nodes[i]);
    }
    std::vector<BufferId> kept;
    int64_t bytes = 0;
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      const int64_t maker = makers_[b];
      if (maker == kNone || !folded[static_cast<size_t>(maker)]) continue;
      const auto& readers = uses_[b].readers;
      const bool is_read = std::any_of(readers.begin(), readers.end(), [&](int64_t reader) {
        return !folded[static_cast<size_t>(reader)];
      });
      if (!is_read) continue;
      kept.push_back(static_cast<BufferId>(b));
      bytes += graph_.buffers[b].bytes;
    }
    if (kept.empty() || bytes > kMostBytes) return;
    for (const BufferId buffer : kept) {
      if (!compute(makers_[buffer])) return;
    }
    for (const BufferId buffer : kept) {
      Buffer& now = graph_.buffers[buffer];
      now.kind = Buffer::Kind::kState;
      now.state = values_[buffer];
      now.is_constant = true;
    }
    remove_nodes(graph_, folded);
    compact(graph_);
  }

 private:
  BufferId buffer_of(ViewId view) const { return graph_.views[view].buffer; }

  static bool reads_tensors(const Node& node) {
    return std::any_of(node.arguments.begin(), node.arguments.end(), [](const Operand& operand) {
      return std::any_of(operand.views.begin(), operand.views.end(),
                         [](ViewId view) { return view != kNone; });
    });
  }

  bool can_be_folded(const Node& node) const {
    if (node.loop || !node.op.schema().name().starts_with("aten::")) return false;
    if (!is_pure(node) || leaves_memory_as_it_is(node.op)) return false;
    for (const Operand& operand : node.arguments) {
      for (const ViewId view : operand.views) {
        if (view != kNone && makers_[buffer_of(view)] == kNone) return false;
      }
    }
    for (const Operand& result : node.results) {
      for (const ViewId view : result.views) {
        if (view == kNone) continue;
        const BufferId buffer = buffer_of(view);
        if (!is_value(graph_, uses_, buffer) || uses_[buffer].is_output) return false;
      }
    }
    return true;
  }

  // Computes the results of a node, and first of those that it depends on.
  bool compute(int64_t index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    torch::jit::Stack stack;
    for (const Operand& operand : node.arguments) {
      for (const ViewId view : operand.views) {
        if (view == kNone || values_[buffer_of(view)].defined()) continue;
        if (!compute(makers_[buffer_of(view)])) return false;
      }
      stack.push_back(value_of(operand, [this](ViewId id) { return tensor_of(id); }));
    }
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    node.op.callBoxed(stack);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Operand& result = node.results[i];
      for (size_t j = 0; j < result.views.size(); ++j) {
        if (result.views[j] == kNone) continue;
        const View& view = graph_.views[result.views[j]];
        const at::Tensor tensor = result.kind == Operand::Kind::kTensor
                                      ? stack[i].toTensor()
                                      : stack[i].toTensorVector()[j];
        if (tensor.scalar_type() != view.dtype || tensor.sizes() != view.sizes ||
            tensor.strides() != view.strides || tensor.storage_offset() != view.offset) {
          return false;
        }
        values_[view.buffer] = tensor;
      }
    }
    return true;
  }

  at::Tensor tensor_of(ViewId id) const {
    const View& view = graph_.views[id];
    return tensor_in(values_[view.buffer], view.dtype, view.sizes, view.strides, view.offset,
                     view.is_conj);
  }

  Graph& graph_;
  std::vector<Uses> uses_;
  std::vector<int64_t> makers_;     // The constant node that makes each buffer, or kNone.
  std::vector<at::Tensor> values_;  // Values of buffers, once they are computed.
};

}  // namespace

void fold_constants(Graph& graph) { Folding(graph).run(); }

}  // namespace gallop::compile::passes
