#include "gallop/compile/passes/rematerialize.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "gallop/compile/analysis.h"
#include "gallop/compile/arena.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

// GEMM operations of a CPU in the time in which it moves a byte, measured on servers of 2023.
constexpr double kFlopsPerByte = 17, kNarrowFlopsPerByte = 50;
// The overhead of a call, some 5 us.
constexpr int64_t kBytesPerCall = 100'000;

int64_t bytes_of(const Graph& graph, ViewId id) {
  const View& view = graph.views[id];
  return std::min(view.numel() * static_cast<int64_t>(c10::elementSize(view.dtype)),
                  graph.buffers[view.buffer].bytes);
}

int64_t bytes_moved(const Graph& graph, const Node& node) {
  int64_t bytes = kBytesPerCall;
  for (const Access& access : accesses_of(node)) {
    bytes += (access.reads ? 1 : 0) * bytes_of(graph, access.view);
    bytes += (access.writes ? 1 : 0) * bytes_of(graph, access.view);
  }
  return bytes;
}

// The time of a GEMM as the number of bytes moved in the same time: with matrices of m x k, k x n
// and m x n elements, the product of the three numels is the square of m * k * n.
double bytes_of_gemm(const Graph& graph, const Node& node) {
  const std::string name = name_of(node.op);
  const bool is_gemm = name.find("mm") != std::string::npos ||
                       name.find("conv") != std::string::npos ||
                       name.find("linear") != std::string::npos;
  if (!is_gemm) return 0;
  std::vector<double> sizes;
  bool narrow = false;
  for (const Access& access : accesses_of(node)) {
    const View& view = graph.views[access.view];
    sizes.push_back(static_cast<double>(view.numel()));
    narrow = narrow || view.dtype == c10::kBFloat16 || view.dtype == c10::kHalf;
  }
  if (sizes.size() < 3) return 0;
  std::partial_sort(sizes.begin(), sizes.begin() + 3, sizes.end(), std::greater<>());
  return 2 * std::sqrt(sizes[0] * sizes[1] * sizes[2]) /
         (narrow ? kNarrowFlopsPerByte : kFlopsPerByte);
}

double bytes_of_step(const Graph& graph) {
  double bytes = 0;
  for (const Node& node : graph.nodes) {
    bytes += static_cast<double>(bytes_moved(graph, node)) + bytes_of_gemm(graph, node);
  }
  return bytes;
}

bool is_cheap(const Graph& graph, const Node& node) {
  if (is_loop(node) || is_pointwise(graph, node)) return true;
  const std::string& name = node.op.schema().name();
  return name == "gallop::activation" || name == "aten::_to_copy" || name == "aten::clone";
}

// The only tensor that a node creates.
std::optional<ViewId> only_result(const Node& node) {
  if (node.results.size() != 1 || node.results[0].views.size() != 1) return std::nullopt;
  const ViewId view = node.results[0].views[0];
  return view == kNone ? std::nullopt : std::optional(view);
}

// A node to repeat before `late`, so that its result is not live at the peak.
struct Choice {
  int64_t node = kNone, late = kNone;
  int64_t saved = 0, cost = 0;  // Bytes.

  double worth() const { return static_cast<double>(saved) / static_cast<double>(cost); }
};

class Recomputation {
 public:
  Recomputation(Graph graph, double budget)
      : graph_(std::move(graph)), budget_(budget), is_done_(graph_.nodes.size()) {}

  // Recomputes nodes while that saves memory, and returns the graph with the lowest peak found.
  Graph find() {
    Graph best = graph_;
    int64_t least = look();
    while (const auto choice = choose()) {
      apply(*choice);
      budget_ -= static_cast<double>(choice->cost);
      const int64_t most = look();
      if (most >= least) continue;
      least = most;
      best = graph_;
    }
    return best;
  }

 private:
  // Finds the peak; returns the bytes in use then.
  int64_t look() {
    uses_ = uses_of(graph_);
    lives_ = lifetimes_of(graph_);
    const auto end = static_cast<int64_t>(graph_.nodes.size());
    std::vector<int64_t> change(graph_.nodes.size() + 1);
    for (size_t id = 0; id < graph_.buffers.size(); ++id) {
      const Buffer& buffer = graph_.buffers[id];
      const Lifetime& life = lives_[id];
      const bool counts =
          buffer.kind == Buffer::Kind::kTemporary && life.first != kNone && life.last < end;
      if (!counts) continue;
      change[static_cast<size_t>(life.first)] += buffer.bytes;
      change[static_cast<size_t>(life.last) + 1] -= buffer.bytes;
    }
    int64_t now = 0, most = 0;
    peak_ = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      now += change[i];
      if (now <= most) continue;
      most = now;
      peak_ = static_cast<int64_t>(i);
    }
    return most;
  }

  std::optional<Choice> choose() const {
    std::optional<Choice> best;
    for (int64_t node = 0; node < peak_; ++node) {
      const auto choice = choice_of(node);
      if (choice && (!best || choice->worth() > best->worth())) best = choice;
    }
    return best;
  }

  std::optional<Choice> choice_of(int64_t id) const {
    const Node& node = graph_.nodes[id];
    const auto result = only_result(node);
    if (!result || is_done_[id]) return std::nullopt;
    const BufferId made = graph_.views[*result].buffer;
    const Uses& uses = uses_[made];
    if (lives_[made].last <= peak_ || uses.is_output || !is_value(graph_, uses_, made) ||
        !is_whole(graph_, *result)) {
      return std::nullopt;
    }
    const auto late = std::lower_bound(uses.readers.begin(), uses.readers.end(), peak_);
    if (late == uses.readers.begin() || late == uses.readers.end() || *late == peak_) {
      return std::nullopt;
    }
    if (!is_pure(node) || !is_cheap(graph_, node)) return std::nullopt;
    Choice choice{.node = id,
                  .late = *late,
                  .saved = graph_.buffers[made].bytes,
                  .cost = bytes_moved(graph_, node)};
    for (const Access& access : accesses_of(node)) {
      if (!access.reads) continue;
      const BufferId taken = graph_.views[access.view].buffer;
      if (changes_between(taken, id, *late)) return std::nullopt;
      const bool is_there = graph_.buffers[taken].kind != Buffer::Kind::kTemporary ||
                            uses_[taken].is_output || lives_[taken].last >= peak_;
      if (!is_there) choice.saved -= graph_.buffers[taken].bytes;
    }
    const bool fits = choice.saved > 0 && static_cast<double>(choice.cost) <= budget_;
    return fits ? std::optional(choice) : std::nullopt;
  }

  bool changes_between(BufferId buffer, int64_t first, int64_t last) const {
    return std::any_of(uses_[buffer].writers.begin(), uses_[buffer].writers.end(),
                       [&](int64_t writer) { return writer > first && writer < last; });
  }

  void apply(const Choice& choice) {
    Node again = graph_.nodes[choice.node];
    const BufferId made = graph_.views[again.results[0].views[0]].buffer;
    const auto fresh = static_cast<BufferId>(graph_.buffers.size());
    graph_.buffers.push_back(graph_.buffers[made]);
    const auto moved = [&](ViewId id) {
      if (id == kNone || graph_.views[id].buffer != made) return id;
      View view = graph_.views[id];
      view.buffer = fresh;
      return graph_.intern(view);
    };
    again.results[0].views[0] = moved(again.results[0].views[0]);
    for (size_t i = static_cast<size_t>(choice.late); i < graph_.nodes.size(); ++i) {
      for (Operand& operand : graph_.nodes[i].arguments) {
        for (ViewId& view : operand.views) view = moved(view);
      }
    }
    graph_.nodes.insert(graph_.nodes.begin() + choice.late, std::move(again));
    is_done_[choice.node] = true;
    is_done_.insert(is_done_.begin() + choice.late, true);
  }

  Graph graph_;
  double budget_;              // Bytes that may still be moved.
  std::vector<bool> is_done_;  // By node: whether it is already repeated.
  std::vector<Uses> uses_;
  std::vector<Lifetime> lives_;
  int64_t peak_ = 0;
};

int64_t planned(const Graph& graph) { return plan_memory(graph, Arena::kMargin).bytes; }

}  // namespace

void rematerialize(Graph& graph, const RematerializeLimits& limits) {
  Graph smaller = Recomputation(graph, limits.most_time * bytes_of_step(graph)).find();
  const auto before = static_cast<double>(planned(graph));
  if (static_cast<double>(planned(smaller)) < (1 - limits.least_saved) * before) {
    graph = std::move(smaller);
  }
}

void rematerialize(Graph& graph) { rematerialize(graph, RematerializeLimits()); }

}  // namespace gallop::compile::passes
