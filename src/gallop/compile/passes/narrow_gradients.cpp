#include <array>
#include <string_view>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// Operators whose argument of this index is a list of gradients in fp32 or bf16.
struct Taker {
  std::string_view op;
  size_t gradients;
};
constexpr std::array<Taker, 2> kTakers = {{{"gallop::update_", 2}, {"gallop::norm", 0}}};

// The bf16 tensor from which a cast made `view`, with equal positions; kNone if there is none.
ViewId before_cast(const Graph& graph, const std::vector<Uses>& uses, ViewId view) {
  const BufferId buffer = graph.views[view].buffer;
  if (!is_value(graph, uses, buffer)) return kNone;
  const Node& maker = graph.nodes[uses[buffer].writers[0]];
  if (name_of(maker.op) != "aten::_to_copy" || maker.results[0].views[0] != view) return kNone;
  const ViewId source = maker.arguments[0].views[0];
  const View &from = graph.views[source], &to = graph.views[view];
  const bool same = from.dtype == c10::kBFloat16 && to.dtype == c10::kFloat &&
                    from.sizes == to.sizes && from.strides == to.strides && from.is_dense() &&
                    is_value(graph, uses, from.buffer);
  return same ? source : kNone;
}

}  // namespace

void narrow_gradients(Graph& graph) {
  const auto uses = uses_of(graph);
  for (Node& node : graph.nodes) {
    const std::string name = name_of(node.op);
    for (const Taker& taker : kTakers) {
      if (name != taker.op) continue;
      for (ViewId& gradient : node.arguments[taker.gradients].views) {
        const ViewId narrow = gradient == kNone ? kNone : before_cast(graph, uses, gradient);
        if (narrow != kNone) gradient = narrow;
      }
    }
  }
}

}  // namespace gallop::compile::passes
