#include <string_view>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

bool is_cast(const Node& node) {
  return name_of(node.op) == "aten::_to_copy" && node.arguments[0].kind == Operand::Kind::kTensor;
}

// Whether `wide` represents every value of `narrow`.
bool widens(at::ScalarType narrow, at::ScalarType wide) {
  if (narrow == wide) return true;
  if (wide == c10::kDouble) return c10::isFloatingType(narrow);
  return wide == c10::kFloat && (narrow == c10::kBFloat16 || narrow == c10::kHalf);
}

// The view of `buffer` with the elements of `view`, a view of a buffer of the same layout.
ViewId moved(Graph& graph, ViewId view, BufferId buffer, at::ScalarType dtype) {
  View same = graph.views[view];
  same.buffer = buffer;
  same.dtype = dtype;
  return graph.intern(same);
}

}  // namespace

void merge_casts(Graph& graph) {
  auto uses = uses_of(graph);
  // By buffer: the node of the cast that made it.
  std::vector<int64_t> cast_of(graph.buffers.size(), kNone);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (!is_cast(node)) continue;
    const ViewId from = node.arguments[0].views[0], to = node.results[0].views[0];
    if (from == kNone || to == kNone) continue;
    const BufferId made = graph.views[to].buffer;
    if (!is_whole(graph, to)) continue;
    cast_of[made] = static_cast<int64_t>(i);
    // The value before a widening cast is the same.
    const BufferId source = graph.views[from].buffer;
    if (cast_of[source] == kNone || !is_value(graph, uses, source)) continue;
    const Node& first = graph.nodes[cast_of[source]];
    const ViewId origin = first.arguments[0].views[0];
    const View &widened = graph.views[first.results[0].views[0]], &original = graph.views[origin];
    const bool unchanged = is_value(graph, uses, original.buffer) && is_whole(graph, origin) &&
                           widens(original.dtype, widened.dtype) &&
                           original.sizes == widened.sizes && original.strides == widened.strides;
    if (unchanged)
      node.arguments[0] = Operand::of(moved(graph, from, original.buffer, original.dtype));
  }
  // A cast without effect is removed: its argument replaces its result.
  for (const Node& node : graph.nodes) {
    if (!is_cast(node)) continue;
    const ViewId from = node.arguments[0].views[0], to = node.results[0].views[0];
    if (from == kNone || to == kNone) continue;
    const View source = graph.views[from], target = graph.views[to];
    const bool nothing = source.dtype == target.dtype && source.sizes == target.sizes &&
                         source.strides == target.strides && is_whole(graph, from) &&
                         is_whole(graph, to) && is_value(graph, uses, source.buffer) &&
                         is_value(graph, uses, target.buffer);
    // Two results of the function must not share memory.
    Uses& of_source = uses[source.buffer];
    if (!nothing || (of_source.is_output && uses[target.buffer].is_output)) continue;
    of_source.is_output = of_source.is_output || uses[target.buffer].is_output;
    for (View& view : graph.views) {
      if (view.buffer == target.buffer && view != target) view.buffer = source.buffer;
    }
    for (Node& reader : graph.nodes) {
      if (&reader == &node) continue;
      for (Operand& operand : reader.arguments) {
        for (ViewId& view : operand.views) view = view == to ? from : view;
      }
    }
    for (ViewId& output : graph.outputs) output = output == to ? from : output;
  }
  compact(graph);
}

}  // namespace gallop::compile::passes
