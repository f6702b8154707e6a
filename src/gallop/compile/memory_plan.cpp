#include "gallop/compile/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "gallop/compile/analysis.h"

namespace gallop::compile {

namespace {

struct Block {
  BufferId buffer = kNone;
  Lifetime life;
  int64_t bytes = 0;  // Including the margin, rounded up.
  int64_t offset = 0;

  bool meets(const Block& other) const {
    return life.first <= other.life.last && other.life.first <= life.last;
  }
};

// The start of the smallest gap between `placed` blocks that fits, or the end of the last one.
int64_t find_gap(const Block& block, const std::vector<Block>& placed) {
  int64_t end = 0, best = kNone, best_size = std::numeric_limits<int64_t>::max();
  for (const Block& other : placed) {  // Sorted by offset.
    if (!block.meets(other)) continue;
    const int64_t gap = other.offset - end;
    if (gap >= block.bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best == kNone ? end : best;
}

int64_t most_in_use(const std::vector<Block>& blocks, size_t nodes) {
  std::vector<int64_t> change(nodes + 1);
  for (const Block& block : blocks) {
    change[static_cast<size_t>(block.life.first)] += block.bytes;
    change[static_cast<size_t>(block.life.last) + 1] -= block.bytes;
  }
  int64_t now = 0, most = 0;
  for (const int64_t bytes : change) most = std::max(most, now += bytes);
  return most;
}

// A collective's threads may release these tensors some time after the wait.
std::vector<BufferId> buffers_of_collectives(const Graph& graph) {
  std::vector<BufferId> buffers;
  for (const Node& node : graph.nodes) {
    if (!starts_collective(node.op)) continue;
    for (const Access& access : accesses_of(node)) {
      buffers.push_back(graph.views[access.view].buffer);
    }
  }
  return buffers;
}

// The order in which an operator allocates blocks of equal size is unknown, so each must fit at
// the other's place: gives them the longest of their lifetimes.
std::vector<Lifetime> with_equal_siblings(std::vector<Lifetime> lives, const Graph& graph) {
  std::map<std::pair<int64_t, int64_t>, int64_t> last;  // By node and size.
  const auto key = [&](size_t id) { return std::pair(lives[id].first, graph.buffers[id].bytes); };
  const auto is_made = [&](size_t id) {
    return graph.buffers[id].kind == Buffer::Kind::kTemporary && lives[id].first != kNone;
  };
  for (size_t id = 0; id < lives.size(); ++id) {
    if (!is_made(id)) continue;
    int64_t& end = last[key(id)];
    end = std::max(end, lives[id].last);
  }
  for (size_t id = 0; id < lives.size(); ++id) {
    if (is_made(id)) lives[id].last = last[key(id)];
  }
  return lives;
}

}  // namespace

std::vector<Lifetime> lifetimes_of(const Graph& graph) {
  std::vector<Lifetime> lives(graph.buffers.size());
  const auto touches = touches_of(graph);
  for (size_t i = 0; i < touches.size(); ++i) {
    for (const Touch& touch : touches[i]) {
      Lifetime& life = lives[touch.buffer];
      if (life.first == kNone) life.first = static_cast<int64_t>(i);
      life.last = static_cast<int64_t>(i);
    }
  }
  for (const ViewId output : graph.outputs) {
    if (output != kNone) {
      lives[graph.views[output].buffer].last = static_cast<int64_t>(graph.nodes.size());
    }
  }
  return lives;
}

MemoryPlan plan_memory(const Graph& graph, int64_t margin) {
  const auto end = static_cast<int64_t>(graph.nodes.size());
  auto lives = lifetimes_of(graph);
  for (const BufferId buffer : buffers_of_collectives(graph)) lives[buffer].last = end;
  lives = with_equal_siblings(std::move(lives), graph);
  std::vector<Block> blocks;
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const Buffer& buffer = graph.buffers[id];
    const bool planned = buffer.kind == Buffer::Kind::kTemporary && buffer.device.is_cpu() &&
                         buffer.bytes > 0 && lives[id].first != kNone && lives[id].last < end;
    if (!planned) continue;
    const int64_t bytes = (margin + buffer.bytes + MemoryPlan::kAlignment - 1) /
                          MemoryPlan::kAlignment * MemoryPlan::kAlignment;
    blocks.push_back({.buffer = static_cast<BufferId>(id), .life = lives[id], .bytes = bytes});
  }
  MemoryPlan plan{.offsets = std::vector<int64_t>(graph.buffers.size(), kNone),
                  .bytes = 0,
                  .most_in_use = most_in_use(blocks, graph.nodes.size())};
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::vector<Block> placed;
  for (Block& block : blocks) {
    block.offset = find_gap(block, placed);
    plan.offsets[block.buffer] = block.offset + margin;
    plan.bytes = std::max(plan.bytes, block.offset + block.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), block,
                         [](const Block& a, const Block& b) { return a.offset < b.offset; }),
        block);
  }
  return plan;
}

}  // namespace gallop::compile
