#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

// Enough to keep intermediate values in registers.
constexpr size_t kMostNodes = 32, kMostOperands = 16;

// Nodes to be one loop, in the place of the last of them.
using Group = std::set<int64_t>;

class Fusion {
 public:
  explicit Fusion(const Graph& graph)
      : graph_(graph), uses_(uses_of(graph)), group_of_(graph.nodes.size(), kNone) {}

  std::vector<Group> find() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (can_join(graph_.nodes[i])) join(static_cast<int64_t>(i));
    }
    std::vector<Group> found;
    for (Group& group : groups_) {
      if (group.size() > 1) found.push_back(std::move(group));
    }
    return found;
  }

  const std::vector<Uses>& uses() const { return uses_; }

 private:
  ViewId result_of(int64_t node) const { return graph_.nodes[node].results[0].views[0]; }

  bool can_join(const Node& node) const {
    if (!is_pointwise(graph_, node)) return false;
    const ViewId result = node.results[0].views[0];
    return is_value(graph_, uses_, graph_.views[result].buffer) && is_whole(graph_, result);
  }

  // Its own group, joined by those that make what it takes as long as that is right.
  void join(int64_t node) {
    group_of_[node] = static_cast<int64_t>(groups_.size());
    groups_.push_back({node});
    for (const ViewId view : arguments_of(graph_.nodes[node])) {
      const auto& writers = uses_[graph_.views[view].buffer].writers;
      if (writers.empty() || writers[0] >= node || group_of_[writers[0]] == kNone) continue;
      const int64_t other = group_of_[writers[0]], own = group_of_[node];
      if (other == own || result_of(writers[0]) != view) continue;
      Group both = groups_[other];
      both.insert(groups_[own].begin(), groups_[own].end());
      if (!is_right(both)) continue;
      for (const int64_t member : groups_[own]) group_of_[member] = other;
      groups_[other] = std::move(both);
      groups_[own].clear();
    }
  }

  static std::vector<ViewId> arguments_of(const Node& node) {
    std::vector<ViewId> views;
    for (const Operand& operand : node.arguments) {
      if (operand.kind == Operand::Kind::kTensor) views.push_back(operand.views[0]);
    }
    return views;
  }

  bool is_right(const Group& group) const {
    if (group.size() > kMostNodes) return false;
    const int64_t last = *group.rbegin();
    const auto& sizes = graph_.views[result_of(last)].sizes;
    std::set<ViewId> operands;
    for (const int64_t member : group) {
      if (graph_.views[result_of(member)].sizes != sizes) return false;
      const BufferId made = graph_.views[result_of(member)].buffer;
      bool read_outside = uses_[made].is_output;
      for (const int64_t reader : uses_[made].readers) {
        if (group.contains(reader)) continue;
        if (reader < last) return false;
        read_outside = true;
      }
      if (read_outside) operands.insert(result_of(member));
      for (const ViewId view : arguments_of(graph_.nodes[member])) {
        const BufferId buffer = graph_.views[view].buffer;
        const auto& writers = uses_[buffer].writers;
        const bool inside = std::any_of(writers.begin(), writers.end(),
                                        [&](int64_t writer) { return group.contains(writer); });
        // Another form of what a member makes is not there yet.
        if (inside && view != result_of(writers[0])) return false;
        if (inside) continue;
        operands.insert(view);
        // It is read later than before.
        const bool changes = std::any_of(writers.begin(), writers.end(), [&](int64_t writer) {
          return writer > member && writer <= last;
        });
        if (changes) return false;
      }
    }
    return operands.size() <= kMostOperands;
  }

  const Graph& graph_;
  std::vector<Uses> uses_;
  std::vector<int64_t> group_of_;  // By node.
  std::vector<Group> groups_;
};

// Strides of a view broadcast to `sizes`.
std::vector<int64_t> broadcast_strides(const View& view, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 0);
  const size_t missing = sizes.size() - view.sizes.size();
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] != 1) strides[missing + i] = view.strides[i];
  }
  return strides;
}

struct Fused {
  LoopProgram program;
  std::vector<ViewId> inputs, results;
};

Fused fused(const Graph& graph, const std::vector<Uses>& uses, const Group& group) {
  std::vector<int64_t> sizes = graph.views[graph.nodes[*group.begin()].results[0].views[0]].sizes;
  // A loop has at least one dimension.
  LoopBuilder builder(sizes.empty() ? std::vector<int64_t>{1} : sizes);
  const auto strides_of = [&](const View& view) {
    return sizes.empty() ? std::vector<int64_t>{0} : broadcast_strides(view, sizes);
  };
  Fused fused;
  std::map<ViewId, Value> values;
  for (const int64_t member : group) {
    const Node& node = graph.nodes[member];
    std::vector<Value> arguments;
    for (const Operand& operand : node.arguments) {
      if (operand.kind != Operand::Kind::kTensor) continue;
      const ViewId id = operand.views[0];
      auto known = values.find(id);
      if (known == values.end()) {
        const View& view = graph.views[id];
        known = values.emplace(id, builder.input(*format_of(view.dtype), strides_of(view))).first;
        fused.inputs.push_back(id);
      }
      arguments.push_back(known->second);
    }
    values[node.results[0].views[0]] = lower(builder, graph, node, arguments);
  }
  for (const int64_t member : group) {
    const ViewId result = graph.nodes[member].results[0].views[0];
    const View& view = graph.views[result];
    const Uses& of_result = uses[view.buffer];
    const bool leaves =
        of_result.is_output || std::any_of(of_result.readers.begin(), of_result.readers.end(),
                                           [&](int64_t reader) { return !group.contains(reader); });
    if (!leaves) continue;
    fused.results.push_back(result);
    auto strides = strides_of(view);
    if (sizes.empty()) strides = {1};
    builder.output(values.at(result), *format_of(view.dtype), std::move(strides));
  }
  fused.program = std::move(builder).finish();
  return fused;
}

}  // namespace

void fuse(Graph& graph, PassContext& context) {
  Fusion fusion(graph);
  const std::vector<Group> groups = fusion.find();
  std::vector<Fused> loops;
  std::vector<LoopProgram> programs;
  std::vector<c10::Device> devices;
  for (const Group& group : groups) {
    loops.push_back(fused(graph, fusion.uses(), group));
    programs.push_back(loops.back().program);
    devices.push_back(graph.buffer_of(loops.back().results[0]).device);
  }
  auto kernels = LoopKernel::make(programs, context.compiler, devices);
  std::vector<bool> removed(graph.nodes.size());
  std::string lost;
  size_t kept = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!kernels[i]->wait()) {
      kept += 1;
      lost = kernels[i]->lost();
      continue;
    }
    auto loop = std::make_shared<GeneratedLoop>();
    loop->kernel = std::move(kernels[i]);
    for (const ViewId result : loops[i].results) loop->results.push_back(graph.views[result]);
    for (const int64_t member : groups[i]) {
      loop->parts.push_back(name_of(graph.nodes[member].op));
      removed[member] = true;
    }
    const int64_t last = *groups[i].rbegin();
    removed[last] = false;
    graph.nodes[last] = loop_node(std::move(loop), loops[i].inputs, loops[i].results);
  }
  if (kept > 0) {
    context.lost.push_back(
        fmt::format("{} of {} chains of operators are not fused: {}", kept, groups.size(), lost));
  }
  remove_nodes(graph, removed);
  compact(graph);
}

}  // namespace gallop::compile::passes
