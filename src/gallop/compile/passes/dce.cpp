#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

void dce(Graph& graph) {
  std::vector<bool> needed(graph.buffers.size());
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    needed[id] = graph.buffers[id].kind != Buffer::Kind::kTemporary;
  }
  for (const ViewId output : graph.outputs) {
    if (output != kNone) needed[graph.views[output].buffer] = true;
  }
  std::vector<bool> removed(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const auto accesses = accesses_of(graph.nodes[i]);
    const auto& op = graph.nodes[i].op;
    bool used = is_random(op) || starts_collective(op) || waits_for_collective(op);
    bool writes = false;
    for (const Access& access : accesses) {
      if (!access.writes) continue;
      writes = true;
      used = used || needed[graph.views[access.view].buffer];
    }
    // A node that writes nothing has an unknown effect.
    removed[i] = writes && !used;
    if (removed[i]) continue;
    // The buffers that it accesses must be created.
    for (const Access& access : accesses) needed[graph.views[access.view].buffer] = true;
  }
  remove_nodes(graph, removed);
  compact(graph);
}

}  // namespace gallop::compile::passes
