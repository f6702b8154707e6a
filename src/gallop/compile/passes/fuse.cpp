#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes/fused_loop.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

// Few enough to keep intermediate values in registers.
constexpr size_t kMostNodes = 32, kMostOperands = 16;
// The distance in nodes beyond which live memory matters, as between two micro-batches.
constexpr int64_t kFar = 64;

class Fusion {
 public:
  explicit Fusion(const Graph& graph)
      : graph_(graph), uses_(uses_of(graph)), group_of_(graph.nodes.size(), kNone) {}

  // The groups for which a loop is faster, with their loops.
  std::vector<std::pair<Group, FusedLoop>> find() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (can_join(graph_.nodes[i])) join(static_cast<int64_t>(i));
    }
    std::vector<std::pair<Group, FusedLoop>> found;
    for (Group& group : groups_) {
      if (group.empty()) continue;
      if (auto loop = fused_loop(graph_, uses_, group)) {
        found.emplace_back(std::move(group), std::move(*loop));
      }
    }
    return found;
  }

 private:
  ViewId result_of(int64_t node) const { return graph_.nodes[node].results[0].views[0]; }

  bool can_join(const Node& node) const {
    if (!may_be_in_loop(graph_, node)) return false;
    const ViewId result = node.results[0].views[0];
    return is_value(graph_, uses_, graph_.views[result].buffer) &&
           (is_whole(graph_, result) || is_rest(result));
  }

  // Losses leave their scalar in a buffer for all elements, of which nothing else is read.
  bool is_rest(ViewId result) const {
    const View& view = graph_.views[result];
    return view.sizes.empty() && view.offset == 0 &&
           std::all_of(graph_.views.begin(), graph_.views.end(), [&](const View& other) {
             return other.buffer != view.buffer || (other.offset == 0 && other.numel() == 1);
           });
  }

  // Starts a group with the node, and merges it with those of its producers while that is valid.
  void join(int64_t node) {
    group_of_[node] = static_cast<int64_t>(groups_.size());
    groups_.push_back({node});
    for (const ViewId view : tensors_of(graph_.nodes[node])) {
      const auto& writers = uses_[graph_.views[view].buffer].writers;
      if (writers.empty() || writers[0] >= node || group_of_[writers[0]] == kNone) continue;
      const int64_t other = group_of_[writers[0]], own = group_of_[node];
      if (other == own) continue;
      Group both = groups_[other];
      both.insert(groups_[own].begin(), groups_[own].end());
      if (!is_right(both) || keeps_too_much(groups_[other], *both.rbegin()) ||
          !fused_loop(graph_, uses_, both)) {
        continue;
      }
      for (const int64_t member : groups_[own]) group_of_[member] = other;
      groups_[other] = std::move(both);
      groups_[own].clear();
    }
  }

  // Whether all of the group may be computed at the position of its last node.
  bool is_right(const Group& group) const {
    if (group.size() > kMostNodes) return false;
    const int64_t last = *group.rbegin();
    std::set<ViewId> operands;
    for (const int64_t member : group) {
      const BufferId made = graph_.views[result_of(member)].buffer;
      bool read_outside = uses_[made].is_output;
      for (const int64_t reader : uses_[made].readers) {
        // A loop writes the parts of a join at different positions than others read them.
        if (group.contains(reader) && is_join(graph_, graph_.nodes[member])) return false;
        if (group.contains(reader)) continue;
        if (reader < last) return false;
        read_outside = true;
      }
      if (read_outside) operands.insert(result_of(member));
      for (const ViewId view : tensors_of(graph_.nodes[member])) {
        const BufferId buffer = graph_.views[view].buffer;
        const auto& writers = uses_[buffer].writers;
        const bool inside = std::any_of(writers.begin(), writers.end(),
                                        [&](int64_t writer) { return group.contains(writer); });
        if (inside) continue;
        operands.insert(view);
        // It is now read later than before.
        const bool changes = std::any_of(writers.begin(), writers.end(), [&](int64_t writer) {
          return writer > member && writer <= last;
        });
        if (changes) return false;
      }
    }
    return operands.size() <= kMostOperands;
  }

  // Whether computing the group much later, at `place`, keeps more memory live than its results
  // need: of gradients that are accumulated, each would be live until the end.
  bool keeps_too_much(const Group& group, int64_t place) const {
    const int64_t from = *group.rbegin();
    if (place - from < kFar) return false;
    int64_t kept = 0, made = 0;
    std::set<BufferId> seen;
    for (const int64_t member : group) {
      const BufferId result = graph_.views[result_of(member)].buffer;
      const auto& readers = uses_[result].readers;
      if (!readers.empty() && readers.back() > from) made += graph_.buffers[result].bytes;
      for (const ViewId view : tensors_of(graph_.nodes[member])) {
        const BufferId buffer = graph_.views[view].buffer;
        const Uses& uses = uses_[buffer];
        const bool dies = graph_.buffers[buffer].kind == Buffer::Kind::kTemporary &&
                          !uses.is_output && uses.readers.back() <= from &&
                          !group.contains(uses.writers.front());
        if (dies && seen.insert(buffer).second) kept += graph_.buffers[buffer].bytes;
      }
    }
    return kept > made;
  }

  const Graph& graph_;
  std::vector<Uses> uses_;
  std::vector<int64_t> group_of_;  // By node.
  std::vector<Group> groups_;
};

}  // namespace

void fuse(Graph& graph, PassContext& context) {
  Fusion fusion(graph);
  const auto groups = fusion.find();
  std::vector<LoopProgram> programs;
  std::vector<c10::Device> devices;
  for (const auto& [group, loop] : groups) {
    programs.push_back(loop.program);
    devices.push_back(graph.buffer_of(loop.results[0]).device);
  }
  auto kernels = LoopKernel::make(programs, context.compiler, devices);
  std::vector<bool> removed(graph.nodes.size());
  std::string fallback_reason;
  size_t kept = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!kernels[i]->wait()) {
      kept += 1;
      fallback_reason = kernels[i]->fallback_reason();
      continue;
    }
    const auto& [group, fused] = groups[i];
    auto loop = std::make_shared<GeneratedLoop>();
    loop->kernel = std::move(kernels[i]);
    for (const ViewId result : fused.results) {
      const View& view = graph.views[result];
      loop->results.push_back(view);
      graph.buffers[view.buffer].bytes =
          view.numel() * static_cast<int64_t>(c10::elementSize(view.dtype));
    }
    loop->outputs = fused.outputs;
    std::vector<int32_t> origins;
    for (const int64_t member : group) {
      const Node& node = graph.nodes[member];
      loop->parts.push_back(name_of(node.op));
      origins.insert(origins.end(), node.origins.begin(), node.origins.end());
      removed[member] = true;
    }
    const int64_t last = *group.rbegin();
    removed[last] = false;
    graph.nodes[last] = loop_node(std::move(loop), fused.inputs, fused.results);
    add_origins(graph.nodes[last], origins);
  }
  if (kept > 0) {
    context.fallbacks.push_back(fmt::format("{} of {} chains of operators are not fused: {}", kept,
                                            groups.size(), fallback_reason));
  }
  remove_nodes(graph, removed);
  compact(graph);
}

}  // namespace gallop::compile::passes
