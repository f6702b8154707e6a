#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

#include "gallop/compile/analysis.h"
#include "gallop/compile/difference.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile::passes {

namespace {

// The key of a call; constants are compared separately.
struct Call {
  std::string op;
  std::vector<int64_t> operands;  // Views, each with the number of writes to its buffer before.

  bool operator<(const Call& other) const {
    return std::tie(op, operands) < std::tie(other.op, other.operands);
  }
};

Call call_of(const Graph& graph, const Node& node, const std::vector<int64_t>& versions) {
  Call call{.op = name_of(node.op), .operands = {}};
  for (const Operand& operand : node.arguments) {
    call.operands.push_back(static_cast<int64_t>(operand.kind));
    for (const ViewId view : operand.views) {
      call.operands.push_back(view);
      call.operands.push_back(view == kNone ? 0 : versions[graph.views[view].buffer]);
    }
  }
  return call;
}

bool same_constants(const Node& a, const Node& b) {
  return std::equal(
      a.arguments.begin(), a.arguments.end(), b.arguments.begin(),
      [](const Operand& x, const Operand& y) { return is_same(x.constant, y.constant); });
}

bool makes_values(const Graph& graph, const std::vector<Uses>& uses, const Node& node) {
  for (const Operand& result : node.results) {
    for (const ViewId view : result.views) {
      if (view != kNone && !is_value(graph, uses, graph.views[view].buffer)) return false;
    }
  }
  return true;
}

bool same_layouts(const Graph& graph, const Node& a, const Node& b) {
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i].views.size() != b.results[i].views.size()) return false;
    for (size_t j = 0; j < a.results[i].views.size(); ++j) {
      const ViewId x = a.results[i].views[j], y = b.results[i].views[j];
      if ((x == kNone) != (y == kNone)) return false;
      if (x == kNone) continue;
      View as_x = graph.views[y];
      as_x.buffer = graph.views[x].buffer;
      if (as_x != graph.views[x]) return false;
    }
  }
  return true;
}

// Whether merging would make two results of the function share memory.
bool are_results_apart(const Graph& graph, const std::vector<Uses>& uses, const Node& a,
                       const Node& b) {
  const auto is_output = [&](ViewId view) {
    return view != kNone && uses[graph.views[view].buffer].is_output;
  };
  for (size_t i = 0; i < a.results.size(); ++i) {
    for (size_t j = 0; j < a.results[i].views.size(); ++j) {
      if (is_output(a.results[i].views[j]) && is_output(b.results[i].views[j])) return true;
    }
  }
  return false;
}

// Replaces all views of the buffers that `b` creates by views of those that `a` creates.
void take_results(Graph& graph, std::vector<Uses>& uses, const Node& a, const Node& b) {
  for (size_t i = 0; i < a.results.size(); ++i) {
    for (size_t j = 0; j < a.results[i].views.size(); ++j) {
      const ViewId from = b.results[i].views[j];
      if (from == kNone) continue;
      const BufferId old = graph.views[from].buffer;
      const BufferId now = graph.views[a.results[i].views[j]].buffer;
      uses[now].is_output = uses[now].is_output || uses[old].is_output;
      for (View& view : graph.views) {
        if (view.buffer == old) view.buffer = now;
      }
    }
  }
}

}  // namespace

void cse(Graph& graph) {
  auto uses = uses_of(graph);
  std::vector<int64_t> versions(graph.buffers.size());
  std::map<Call, std::vector<size_t>> seen;
  std::vector<bool> removed(graph.nodes.size());
  bool merged = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (is_pure(node) && makes_values(graph, uses, node)) {
      auto& equals = seen[call_of(graph, node, versions)];
      const auto found = std::find_if(equals.begin(), equals.end(), [&](size_t other) {
        return same_constants(graph.nodes[other], node) &&
               same_layouts(graph, graph.nodes[other], node) &&
               !are_results_apart(graph, uses, graph.nodes[other], node);
      });
      if (found != equals.end()) {
        take_results(graph, uses, graph.nodes[*found], node);
        removed[i] = merged = true;
        continue;
      }
      equals.push_back(i);
    }
    for (const Access& access : accesses_of(node)) {
      if (access.writes) versions[graph.views[access.view].buffer] += 1;
    }
  }
  if (!merged) return;
  remove_nodes(graph, removed);
  compact(graph);
  cse(graph);  // Users of merged results may be equal now.
}

}  // namespace gallop::compile::passes
