#include <nlohmann/json.hpp>

#include "gallop/profile/profile_text.h"

namespace gallop::profile {

namespace {

using Json = nlohmann::ordered_json;

double ms(double seconds) { return 1e3 * seconds; }

Json json_of(const PhaseTime& phase, const Profile& profile) {
  return {{"name", phase.name},
          {"ms", ms(phase.seconds)},
          {"fraction", profile.share_of(phase.seconds)}};
}

Json json_of(const LayerTime& layer, const Profile& profile) {
  return {{"name", layer.name},
          {"ms", ms(layer.seconds())},
          {"fraction", profile.share_of(layer.seconds())},
          {"forward_ms", ms(layer.forward)},
          {"backward_ms", ms(layer.backward)},
          {"other_ms", ms(layer.other)},
          {"flops", layer.flops},
          {"bytes", layer.bytes},
          {"compilation_ms", ms(profile.compilation)},
          {"limit_ms", ms(layer.limit)},
          {"limit_by_flops_ms", ms(layer.limit_by_flops)}};
}

Json json_of(const OperatorTime& one, const Profile& profile) {
  return {
      {"operator", one.op}, {"call", one.call},      {"layer", one.layer},
      {"calls", one.calls}, {"ms", ms(one.seconds)}, {"fraction", profile.share_of(one.seconds)},
      {"flops", one.flops}, {"bytes", one.bytes},    {"limit_ms", ms(one.limit)}};
}

Json json_of(const MemoryUse& use) {
  return {{"activations", use.activations},
          {"gradients", use.gradients},
          {"temporaries", use.temporaries}};
}

Json json_of(const StepMemory& memory) {
  Json layers = Json::array(), at_node = Json::array();
  for (const LayerMemory& layer : memory.layers) {
    Json one = {{"layer", layer.layer}};
    one.update(json_of(layer.use));
    layers.push_back(std::move(one));
  }
  for (const MemoryUse& use : memory.at_node) {
    at_node.push_back({use.activations, use.gradients, use.temporaries});
  }
  return {{"process_bytes", memory.of_process}, {"parameters", memory.parameters},
          {"buffers", memory.buffers},          {"optimizer_state", memory.optimizer},
          {"planned", memory.planned},          {"peak", json_of(memory.peak)},
          {"peak_phase", memory.peak_phase},    {"peak_layer", memory.peak_layer},
          {"peak_call", memory.peak_call},      {"layers", std::move(layers)},
          {"nodes", std::move(at_node)}};
}

template <typename List>
Json list_of(const List& list, const Profile& profile) {
  Json all = Json::array();
  for (const auto& one : list) all.push_back(json_of(one, profile));
  return all;
}

}  // namespace

std::string profile_json(const Profile& profile) {
  const Json object = {{"first_step", profile.first_step},
                       {"steps", profile.steps},
                       {"samples", profile.samples},
                       {"step_ms", ms(profile.seconds)},
                       {"median_ms", ms(profile.median)},
                       {"p95_ms", ms(profile.p95)},
                       {"slowest_ms", ms(profile.slowest)},
                       {"slowest_step", profile.slowest_step},
                       {"limit_ms", ms(profile.limit)},
                       {"flops", profile.flops},
                       {"flops_utilization", profile.flops_utilization},
                       {"phases", list_of(profile.phases, profile)},
                       {"layers", list_of(profile.layers, profile)},
                       {"operators", list_of(profile.operators, profile)},
                       {"memory", json_of(profile.memory)},
                       {"loader",
                        {{"threads", profile.loader.threads},
                         {"busy_fraction", profile.loader.busy},
                         {"parts", list_of(profile.loader.parts, profile)}}}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gallop::profile
