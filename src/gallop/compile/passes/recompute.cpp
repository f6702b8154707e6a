#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/fused_loop.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/passes/pointwise.h"
#include "gallop/compile/passes/reductions.h"

namespace gallop::compile::passes {

namespace {

// Loops have at most 32 nodes.
constexpr size_t kMostRepeated = 12;
// Smaller tensors stay in the caches.
constexpr int64_t kLeastElements = 1 << 16;

/// How a tensor is computed again.
struct Recipe {
  std::set<int64_t> nodes;     // To repeat, including its own.
  std::set<BufferId> sources;  // Tensors in memory that they read.
};

/// The level of a node is the number of nodes through which its operands passed that end a loop:
/// those that no loop computes, and sums over columns, which are complete when all rows are read.
/// Nodes of different levels cannot share a loop: what one makes for the other passes through
/// memory.
class Recomputation {
 public:
  explicit Recomputation(Graph& graph)
      : graph_(graph), uses_(uses_of(graph)), level_of_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      is_in_loop_.push_back(may_be_in_loop(graph, node));
      for (const ViewId tensor : tensors_of(node)) {
        for (const int64_t writer : uses_[graph.views[tensor].buffer].writers) {
          if (writer >= static_cast<int64_t>(i)) break;
          level_of_[i] = std::max(level_of_[i], level_of_[writer] + (ends_loop(writer) ? 1 : 0));
        }
      }
    }
  }

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) consider(static_cast<int64_t>(i));
    apply();
  }

 private:
  bool ends_loop(int64_t node) const {
    if (!is_in_loop_[node]) return true;
    const auto reduction = reduction_of(graph_, graph_.nodes[node]);
    if (!reduction || reduction->is_spread) return false;
    // It reduces rows if the elements that are adjacent in memory are added up.
    const View& read = graph_.views[tensors_of(graph_.nodes[node])[0]];
    for (size_t i = 0; i < read.sizes.size(); ++i) {
      if (read.sizes[i] > 1 && read.strides[i] == 1) return !reduction->reduced[i];
    }
    return true;
  }

  BufferId made_by(int64_t node) const {
    return graph_.views[graph_.nodes[node].results[0].views[0]].buffer;
  }

  // The node that makes the buffer's value by a pointwise operator, if no other may read it.
  int64_t maker_of(BufferId buffer) const {
    if (!is_value(graph_, uses_, buffer)) return kNone;
    const int64_t maker = uses_[buffer].writers[0];
    const bool fits = is_pointwise(graph_, graph_.nodes[maker]) &&
                      graph_.buffers[buffer].device.is_cuda() &&
                      is_whole(graph_, graph_.nodes[maker].results[0].views[0]);
    return fits ? maker : kNone;
  }

  // Whether it is in memory in any case: what is not part of a loop reads it.
  bool is_stored(BufferId buffer) const {
    const auto& readers = uses_[buffer].readers;
    return maker_of(buffer) == kNone || uses_[buffer].is_output ||
           std::any_of(readers.begin(), readers.end(),
                       [&](int64_t reader) { return !is_in_loop_[reader]; });
  }

  std::vector<int64_t> far_readers(int64_t node) const {
    std::vector<int64_t> far;
    for (const int64_t reader : uses_[made_by(node)].readers) {
      if (level_of_[reader] != level_of_[node]) far.push_back(reader);
    }
    return far;
  }

  void consider(int64_t node) {
    const BufferId buffer =
        graph_.nodes[node].results.empty() || !is_in_loop_[node] ? kNone : made_by(node);
    if (buffer == kNone || maker_of(buffer) != node || is_stored(buffer)) return;
    const View& made = graph_.views[graph_.nodes[node].results[0].views[0]];
    const auto far = far_readers(node);
    if (far.empty() || made.numel() < kLeastElements) return;
    Recipe recipe;
    if (!collect(node, recipe)) return;
    for (const int64_t reader : far) {
      if (!is_worth_it(recipe, reader, graph_.buffers[buffer].bytes)) return;
    }
    recipes_.emplace(node, std::move(recipe));
  }

  // False if it takes too many nodes. Reads through what loops keep in registers, and what is
  // computed again itself.
  bool collect(int64_t node, Recipe& recipe) const {
    if (!recipe.nodes.insert(node).second) return true;
    if (recipe.nodes.size() > kMostRepeated) return false;
    for (const ViewId tensor : tensors_of(graph_.nodes[node])) {
      const BufferId buffer = graph_.views[tensor].buffer;
      const int64_t maker = maker_of(buffer);
      const bool is_there =
          is_stored(buffer) || (!recipes_.contains(maker) && !far_readers(maker).empty());
      if (is_there) {
        recipe.sources.insert(buffer);
      } else if (!collect(maker, recipe)) {
        return false;
      }
    }
    return true;
  }

  // Whether the reader's loop reads no more bytes than before, which then need not be written.
  bool is_worth_it(const Recipe& recipe, int64_t reader, int64_t bytes) const {
    int64_t more = 0;
    for (const BufferId source : recipe.sources) {
      const bool changes = !is_value(graph_, uses_, source) &&
                           !is_unchanged_between(uses_[source], *recipe.nodes.begin(), reader + 1);
      if (changes) return false;
      const auto& readers = uses_[source].readers;
      const bool is_read_anyway = std::any_of(readers.begin(), readers.end(), [&](int64_t other) {
        return is_in_loop_[other] && level_of_[other] == level_of_[reader];
      });
      if (!is_read_anyway) more += graph_.buffers[source].bytes;
    }
    return more <= bytes;
  }

  /// A node that is repeated for the readers of one level.
  struct Copy {
    int64_t place = kNone;  // The first node that needs it.
    BufferId buffer = kNone;
  };
  using Copies = std::map<int64_t, Copy>;  // By original.

  void apply() {
    std::map<int64_t, Copies> by_level;
    for (const auto& [node, recipe] : recipes_) {
      for (const int64_t reader : far_readers(node)) {
        Copies& copies = by_level[level_of_[reader]];
        for (const int64_t repeated : recipe.nodes) {
          Copy& copy = copies[repeated];
          copy.place = copy.place == kNone ? reader : std::min(copy.place, reader);
        }
      }
    }
    std::map<int64_t, std::vector<Node>> added;  // Before each node.
    for (auto& [level, copies] : by_level) {
      for (auto& [original, copy] : copies) {
        Node node = graph_.nodes[original];
        read_copies(node, copies);
        copy.buffer = static_cast<BufferId>(graph_.buffers.size());
        graph_.buffers.push_back(Buffer(graph_.buffers[made_by(original)]));
        View result = graph_.views[node.results[0].views[0]];
        result.buffer = copy.buffer;
        node.results[0].views[0] = graph_.intern(result);
        added[copy.place].push_back(std::move(node));
      }
    }
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto found = added.find(static_cast<int64_t>(i)); found != added.end()) {
        nodes.insert(nodes.end(), found->second.begin(), found->second.end());
      }
      const auto copies = by_level.find(level_of_[i]);
      if (is_in_loop_[i] && copies != by_level.end()) {
        read_copies(graph_.nodes[i], copies->second);
      }
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

  // Lets the node read copies in place of their originals.
  void read_copies(Node& node, const Copies& copies) {
    for (Operand& operand : node.arguments) {
      for (ViewId& id : operand.views) {
        if (id == kNone) continue;
        View view = graph_.views[id];
        const auto& writers = uses_[view.buffer].writers;
        const auto copy = writers.empty() ? copies.end() : copies.find(writers[0]);
        if (copy == copies.end() || copy->second.buffer == kNone) continue;
        view.buffer = copy->second.buffer;
        id = graph_.intern(view);
      }
    }
  }

  Graph& graph_;
  std::vector<Uses> uses_;
  std::vector<bool> is_in_loop_;       // By node.
  std::vector<int64_t> level_of_;      // By node.
  std::map<int64_t, Recipe> recipes_;  // By node, of what is not stored.
};

}  // namespace

void recompute(Graph& graph) {
  if (!is_on_gpu(graph)) return;
  Recomputation(graph).run();
  dce(graph);  // What is only read by copies now.
}

}  // namespace gallop::compile::passes
