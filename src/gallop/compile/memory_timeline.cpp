#include "gallop/compile/memory_timeline.h"

#include <algorithm>
#include <map>

#include "gallop/compile/graph.h"
#include "gallop/compile/memory_plan.h"

namespace gallop::compile {

namespace {

int64_t& part_of(MemoryUse& use, const std::string& made_in, const std::string& last_read_in) {
  const bool is_made_in_forward = made_in == "forward" || made_in == "loss";
  if (is_made_in_forward && (last_read_in == "backward" || last_read_in == "recomputation")) {
    return use.activations;
  }
  return made_in == "backward" && last_read_in == "optimizer" ? use.gradients : use.temporaries;
}

NodePlace place_of(const CallLayers& layers, const Node& node) {
  const auto places = layers.places_of(node);
  return places.empty() ? NodePlace() : places.front();
}

}  // namespace

MemoryTimeline memory_timeline(const Graph& graph, const CallLayers& layers) {
  MemoryTimeline timeline{.at_node = std::vector<MemoryUse>(graph.nodes.size())};
  std::vector<NodePlace> places;
  for (const Node& node : graph.nodes) places.push_back(place_of(layers, node));
  const auto lives = lifetimes_of(graph);
  // A result lives on after the last node.
  const auto last_of = [&](const Lifetime& life) {
    return std::min<int64_t>(life.last, static_cast<int64_t>(graph.nodes.size()) - 1);
  };
  const auto is_made = [&](size_t buffer) {
    return graph.buffers[buffer].kind == Buffer::Kind::kTemporary && lives[buffer].first != kNone;
  };
  const auto part = [&](MemoryUse& use, const Lifetime& life) -> int64_t& {
    return part_of(use, places[static_cast<size_t>(life.first)].phase,
                   places[static_cast<size_t>(last_of(life))].phase);
  };
  for (size_t buffer = 0; buffer < graph.buffers.size(); ++buffer) {
    if (!is_made(buffer)) continue;
    for (int64_t node = lives[buffer].first; node <= last_of(lives[buffer]); ++node) {
      part(timeline.at_node[static_cast<size_t>(node)], lives[buffer]) +=
          graph.buffers[buffer].bytes;
    }
  }
  const auto peak = std::max_element(
      timeline.at_node.begin(), timeline.at_node.end(),
      [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); });
  if (peak == timeline.at_node.end()) return timeline;
  timeline.peak = peak - timeline.at_node.begin();
  std::map<std::string, MemoryUse> by_layer;
  for (size_t buffer = 0; buffer < graph.buffers.size(); ++buffer) {
    const Lifetime& life = lives[buffer];
    if (!is_made(buffer) || life.first > timeline.peak || last_of(life) < timeline.peak) continue;
    MemoryUse& use = by_layer[places[static_cast<size_t>(life.first)].layer];
    part(use, life) += graph.buffers[buffer].bytes;
  }
  for (const auto& [layer, use] : by_layer) timeline.at_peak.push_back({layer, use});
  std::stable_sort(
      timeline.at_peak.begin(), timeline.at_peak.end(),
      [](const LayerMemory& a, const LayerMemory& b) { return a.use.total() > b.use.total(); });
  return timeline;
}

}  // namespace gallop::compile
