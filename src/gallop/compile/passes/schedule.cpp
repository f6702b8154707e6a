#include <algorithm>
#include <numeric>
#include <utility>

#include "gallop/compile/analysis.h"
#include "gallop/compile/arena.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// Enough rounds for all graphs that were seen: nothing moves afterwards.
constexpr int kMostRounds = 4;

// The order that must be preserved between nodes.
struct Dependencies {
  std::vector<std::vector<int64_t>> before, after;  // By node, direct ones.

  explicit Dependencies(const Graph& graph)
      : before(graph.nodes.size()), after(graph.nodes.size()) {
    const auto touches = touches_of(graph);
    std::vector<int64_t> writer(graph.buffers.size(), kNone);
    std::vector<std::vector<int64_t>> readers(graph.buffers.size());  // Since it was written.
    int64_t random = kNone, outer = kNone;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const auto node = static_cast<int64_t>(i);
      for (const Touch& touch : touches[i]) {
        add(writer[touch.buffer], node);
        if (!touch.writes) continue;
        for (const int64_t reader : readers[touch.buffer]) add(reader, node);
      }
      for (const Touch& touch : touches[i]) {
        if (touch.writes) {
          writer[touch.buffer] = node;
          readers[touch.buffer].clear();
        }
        if (touch.reads) readers[touch.buffer].push_back(node);
      }
      const auto& op = graph.nodes[i].op;
      if (is_random(op)) add(std::exchange(random, node), node);
      // All processes must call collectives in the same order, and nodes that write nothing may
      // have unknown effects.
      const bool writes = std::any_of(touches[i].begin(), touches[i].end(),
                                      [](const Touch& touch) { return touch.writes; });
      if (starts_collective(op) || !writes) add(std::exchange(outer, node), node);
    }
  }

 private:
  void add(int64_t first, int64_t second) {
    if (first == kNone || first == second) return;
    before[second].push_back(first);
    after[first].push_back(second);
  }
};

// The nodes of a graph in an order that can be changed.
class Schedule {
 public:
  explicit Schedule(const Graph& graph)
      : graph_(graph),
        dependencies_(graph),
        made_(graph.nodes.size()),
        taken_(graph.nodes.size()),
        users_(graph.buffers.size()),
        order_(graph.nodes.size()),
        place_(graph.nodes.size()) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::iota(place_.begin(), place_.end(), int64_t{0});
    std::vector<bool> is_output(graph.buffers.size());
    for (const ViewId output : graph.outputs) {
      if (output != kNone) is_output[graph.views[output].buffer] = true;
    }
    const auto touches = touches_of(graph);
    for (size_t i = 0; i < touches.size(); ++i) {
      for (const Touch& touch : touches[i]) {
        auto& users = users_[touch.buffer];
        const auto node = static_cast<int64_t>(i);
        if (graph.buffers[touch.buffer].kind != Buffer::Kind::kTemporary ||
            (!users.empty() && users.back() == node)) {
          continue;
        }
        // Results stay live, whichever node uses them last.
        if (users.empty()) made_[i].push_back(touch.buffer);
        if (!users.empty() && !is_output[touch.buffer]) taken_[i].push_back(touch.buffer);
        users.push_back(node);
      }
    }
  }

  // Starts collectives as soon as their tensors are available, and waits as late as possible. A
  // wait for what no node uses, such as a tensor that was sent, stays where it is: the tensor would
  // take memory until the end.
  void overlap_collectives() {
    for (size_t i = 0; i < order_.size(); ++i) {
      if (starts_collective(op_at(i))) move(order_[i], earliest(order_[i]));
    }
    for (size_t i = order_.size(); i-- > 0;) {
      if (waits_for_collective(op_at(i)) && has_users(order_[i]))
        move(order_[i], latest(order_[i]));
    }
  }

  // Moves nodes that allocate more than they free to just before their first user, and those
  // that free more to the earliest position at which they do.
  void save_memory() {
    for (int round = 0; round < kMostRounds; ++round) {
      bool moved = false;
      for (size_t i = order_.size(); i-- > 0;) moved |= sink(order_[i]);
      for (size_t i = 0; i < order_.size(); ++i) moved |= lift(order_[i]);
      if (!moved) break;
    }
  }

  Graph graph() const {
    Graph ordered = graph_;
    for (size_t i = 0; i < order_.size(); ++i) ordered.nodes[i] = graph_.nodes[order_[i]];
    return ordered;
  }

 private:
  const c10::OperatorHandle& op_at(size_t place) const { return graph_.nodes[order_[place]].op; }

  bool is_fixed(int64_t node) const {
    const auto& op = graph_.nodes[node].op;
    return starts_collective(op) || waits_for_collective(op);
  }

  bool has_users(int64_t node) const { return !dependencies_.after[node].empty(); }

  int64_t earliest(int64_t node) const {
    int64_t place = 0;
    for (const int64_t other : dependencies_.before[node])
      place = std::max(place, place_[other] + 1);
    return place;
  }
  int64_t latest(int64_t node) const {
    auto place = static_cast<int64_t>(order_.size()) - 1;
    for (const int64_t other : dependencies_.after[node])
      place = std::min(place, place_[other] - 1);
    return place;
  }

  void move(int64_t node, int64_t to) {
    const int64_t from = place_[node];
    const auto begin = order_.begin();
    if (from < to) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    if (to < from) std::rotate(begin + to, begin + from, begin + from + 1);
    for (int64_t i = std::min(from, to); i <= std::max(from, to); ++i) place_[order_[i]] = i;
  }

  int64_t bytes_of(const std::vector<BufferId>& buffers) const {
    int64_t bytes = 0;
    for (const BufferId buffer : buffers) bytes += graph_.buffers[buffer].bytes;
    return bytes;
  }

  // The bytes of those inputs of the node that nothing else uses from position `from` on.
  int64_t bytes_freed(int64_t node, int64_t from) const {
    int64_t bytes = 0;
    for (const BufferId buffer : taken_[node]) {
      const bool is_last =
          std::all_of(users_[buffer].begin(), users_[buffer].end(),
                      [&](int64_t user) { return user == node || place_[user] < from; });
      if (is_last) bytes += graph_.buffers[buffer].bytes;
    }
    return bytes;
  }

  bool sink(int64_t node) {
    if (is_fixed(node) || made_[node].empty() || dependencies_.after[node].empty()) return false;
    const int64_t to = latest(node);
    if (to <= place_[node] || bytes_of(made_[node]) <= bytes_freed(node, to + 1)) return false;
    move(node, to);
    return true;
  }

  bool lift(int64_t node) {
    const int64_t from = place_[node];
    if (is_fixed(node) || bytes_freed(node, from) <= bytes_of(made_[node])) return false;
    // Not before the position at which it frees what it frees now.
    int64_t to = earliest(node);
    for (const BufferId buffer : taken_[node]) {
      for (const int64_t user : users_[buffer]) {
        if (place_[user] < from) to = std::max(to, place_[user] + 1);
      }
    }
    if (to >= from) return false;
    move(node, to);
    return true;
  }

  const Graph& graph_;
  Dependencies dependencies_;
  std::vector<std::vector<BufferId>> made_, taken_;  // By node: temporaries.
  std::vector<std::vector<int64_t>> users_;          // By buffer: nodes.
  std::vector<int64_t> order_;                       // By place: the node.
  std::vector<int64_t> place_;                       // By node.
};

int64_t planned(const Graph& graph) { return plan_memory(graph, Arena::kMargin).bytes; }

}  // namespace

void schedule(Graph& graph) {
  Schedule order(graph);
  order.overlap_collectives();
  Graph overlapped = order.graph();
  order.save_memory();
  order.overlap_collectives();
  Graph smallest = order.graph();
  graph = planned(smallest) < planned(overlapped) ? std::move(smallest) : std::move(overlapped);
}

}  // namespace gallop::compile::passes
