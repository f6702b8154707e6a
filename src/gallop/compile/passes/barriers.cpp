#include <algorithm>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// Whether readers of `made`, which node `barrier` makes from `kept`, may read `kept` instead.
bool may_stand_for(const std::vector<Uses>& uses, BufferId kept, BufferId made, int64_t barrier) {
  const int64_t last = uses[made].readers.empty() ? barrier : uses[made].readers.back();
  const auto& writers = uses[kept].writers;
  return std::none_of(writers.begin(), writers.end(),
                      [&](int64_t writer) { return writer > barrier && writer <= last; });
}

bool has_one_dtype(const Graph& graph, BufferId buffer, at::ScalarType dtype) {
  return std::all_of(graph.views.begin(), graph.views.end(), [&](const View& view) {
    return view.buffer != buffer || view.dtype == dtype;
  });
}

}  // namespace

void barriers(Graph& graph) {
  const auto uses = uses_of(graph);
  std::vector<bool> removed(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (name_of(node.op) != "gallop::barrier") continue;
    const ViewId to = node.results[0].views[0];
    const View from = graph.views[node.arguments[0].views[0]], made = graph.views[to];
    const bool suits = is_value(graph, uses, made.buffer) && !uses[made.buffer].is_output &&
                       is_whole(graph, to) && from.sizes == made.sizes &&
                       from.strides == made.strides && from.dtype == made.dtype &&
                       has_one_dtype(graph, made.buffer, made.dtype) &&
                       may_stand_for(uses, from.buffer, made.buffer, static_cast<int64_t>(i));
    if (!suits) continue;
    for (View& view : graph.views) {
      if (view.buffer != made.buffer) continue;
      view.buffer = from.buffer;
      view.offset += from.offset - made.offset;
    }
    removed[i] = true;
  }
  remove_nodes(graph, removed);
  compact(graph);
}

}  // namespace gallop::compile::passes
