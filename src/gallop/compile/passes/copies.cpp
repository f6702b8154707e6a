#include <algorithm>
#include <string>
#include <vector>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// Whether readers of `made`, which node `copy` makes from `kept`, may read `kept` instead.
bool may_stand_for(const std::vector<Uses>& uses, BufferId kept, BufferId made, int64_t copy) {
  const int64_t last = uses[made].readers.empty() ? copy : uses[made].readers.back();
  const auto& writers = uses[kept].writers;
  return std::none_of(writers.begin(), writers.end(),
                      [&](int64_t writer) { return writer > copy && writer <= last; });
}

bool has_one_dtype(const Graph& graph, BufferId buffer, at::ScalarType dtype) {
  return std::all_of(graph.views.begin(), graph.views.end(), [&](const View& view) {
    return view.buffer != buffer || view.dtype == dtype;
  });
}

bool is_barrier(const Node& node) { return name_of(node.op) == "gallop::barrier"; }

// Whether the result has the elements of the first argument; padding may be none.
bool is_copy(const Node& node) {
  const std::string name = name_of(node.op);
  if (name == "aten::clone") return true;
  if (name != "aten::constant_pad_nd") return false;
  const auto padding = node.arguments[1].constant.toIntVector();
  return std::all_of(padding.begin(), padding.end(), [](int64_t size) { return size == 0; });
}

// Lets the readers of copies read the original.
void remove_copies(Graph& graph, bool (*is_copying)(const Node& node)) {
  const auto uses = uses_of(graph);
  std::vector<bool> removed(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!is_copying(node)) continue;
    const ViewId to = node.results[0].views[0];
    if (to == kNone || node.arguments[0].views.empty() || node.arguments[0].views[0] == kNone) {
      continue;
    }
    const View from = graph.views[node.arguments[0].views[0]], made = graph.views[to];
    const bool suits = is_value(graph, uses, made.buffer) && !uses[made.buffer].is_output &&
                       is_whole(graph, to) && is_laid_out_alike(from, made) &&
                       from.dtype == made.dtype && has_one_dtype(graph, made.buffer, made.dtype) &&
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

}  // namespace

void copies(Graph& graph) { remove_copies(graph, is_copy); }

void barriers(Graph& graph) { remove_copies(graph, is_barrier); }

}  // namespace gallop::compile::passes
