#include "gallop/compile/call_layers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "gallop/compile/graph.h"

namespace gallop::compile {

namespace {

// "layer1.0.conv1" of "layer1.0.conv1.weight"
std::string layer_of_tensor(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

// Follows the calls in their order.
class Layers {
 public:
  Layers(const RecordedCalls& recorded, const GraphNames& names)
      : layers_(recorded.calls.size()),
        of_buffer_(recorded.state.size()),
        is_weight_(recorded.state.size()) {
    std::map<const c10::StorageImpl*, const std::string*> name_of;
    for (const auto& [name, tensor] : names.state) {
      name_of.emplace(tensor.storage().unsafeGetStorageImpl(), &name);
    }
    for (size_t buffer = 0; buffer < recorded.state.size(); ++buffer) {
      const at::Tensor& state = recorded.state[buffer];
      if (!state.defined()) continue;
      const auto found = name_of.find(state.storage().unsafeGetStorageImpl());
      if (found == name_of.end()) continue;
      of_buffer_[buffer] = layer_of_tensor(*found->second);
      is_weight_[buffer] = true;
    }
    for (size_t call = 0; call < recorded.calls.size(); ++call) {
      layers_[call] = next(recorded.calls[call], call);
    }
  }

  std::vector<std::string> take() { return std::move(layers_); }

 private:
  std::string next(const RecordedCall& call, size_t index) {
    if (call.made != kNone) call_of_.emplace(call.made, index);
    std::string layer = layer_of(call);
    // Such as a weight in another format.
    const bool is_weight =
        !call.read.empty() && std::all_of(call.read.begin(), call.read.end(),
                                          [&](BufferId buffer) { return is_weight_[buffer]; });
    for (const BufferId buffer : call.written) {
      if (is_weight_[buffer]) continue;
      of_buffer_[buffer] = layer;
      is_weight_[buffer] = is_weight;
    }
    return layer;
  }

  std::string layer_of(const RecordedCall& call) const {
    if (!call.layer.empty()) return call.layer;
    if (call.phase == "optimizer") return {};
    if (call.phase == "backward") {
      const auto forward = call_of_.find(call.backward);
      if (forward != call_of_.end()) return layers_[forward->second];
    }
    for (const bool weights : {true, false}) {
      if (!weights && call.phase == "loss") return "loss";
      for (const BufferId buffer : call.read) {
        if (is_weight_[buffer] == weights && !of_buffer_[buffer].empty()) {
          return of_buffer_[buffer];
        }
      }
    }
    return {};
  }

  std::vector<std::string> layers_;     // By call.
  std::vector<std::string> of_buffer_;  // The layer that made it, or whose weight it is.
  std::vector<bool> is_weight_;
  std::map<int64_t, size_t> call_of_;  // By sequence number.
};

}  // namespace

CallLayers::CallLayers(const Graph& graph, const GraphNames& names) {
  if (!graph.calls) return;
  auto layers = Layers(*graph.calls, names).take();
  for (size_t call = 0; call < layers.size(); ++call) {
    places_.push_back({.phase = graph.calls->calls[call].phase, .layer = std::move(layers[call])});
  }
}

std::vector<NodePlace> CallLayers::places_of(const Node& node) const {
  std::map<std::pair<std::string, std::string>, double> shares;
  for (const int32_t origin : node.origins) {
    const Place& place = places_[static_cast<size_t>(origin)];
    shares[{place.phase, place.layer}] += 1 / static_cast<double>(node.origins.size());
  }
  std::vector<NodePlace> places;
  for (const auto& [place, share] : shares) {
    places.push_back({.phase = place.first, .layer = place.second, .share = share});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const NodePlace& a, const NodePlace& b) { return a.share > b.share; });
  return places;
}

}  // namespace gallop::compile
