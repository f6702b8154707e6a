#include <nlohmann/json.hpp>

#include "gallop/profile/profile_text.h"
#include "gallop/profile/rank_times.h"

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
          {"limit_ms", ms(layer.limit)},
          {"limit_by_flops_ms", ms(layer.limit_by_flops)}};
}

Json json_of(const OperatorTime& one, const Profile& profile) {
  return {{"operator", one.op},
          {"call", one.call},
          {"layer", one.layer},
          {"format", one.format},
          {"calls", one.calls},
          {"ms", ms(one.seconds)},
          {"fraction", profile.share_of(one.seconds)},
          {"flops", one.flops},
          {"bytes", one.bytes},
          {"limit_ms", ms(one.limit)}};
}

Json json_of(const RankTime& one, const Profile& /*profile*/) {
  return {{"rank", one.rank},
          {"host", one.host},
          {"step_ms", ms(one.seconds)},
          {"compute_ms", ms(one.compute)},
          {"data_wait_ms", ms(one.data_wait)},
          {"exposed_communication_ms", ms(one.exposed_communication)},
          {"overlapped_communication_ms", ms(one.overlapped_communication)},
          {"last_into_collectives", one.last_into_collectives},
          {"trace_offset_ms", ms(one.offset)}};
}

Json json_of(const MemoryUse& use) {
  return {{"activations", use.activations},
          {"gradients", use.gradients},
          {"temporaries", use.temporaries}};
}

// The times of the nodes, in whose order the memory is listed.
Json json_of(const StepMemory& memory, const Profile& profile) {
  Json layers = Json::array(), nodes = Json::array();
  const auto times = profile.node_seconds.find(memory.graph);
  for (const LayerMemory& layer : memory.layers) {
    Json one = {{"layer", layer.layer}};
    one.update(json_of(layer.use));
    layers.push_back(std::move(one));
  }
  for (size_t i = 0; i < memory.at_node.size(); ++i) {
    const NodeMemory& node = memory.at_node[i];
    const bool has_time = times != profile.node_seconds.end() && i < times->second.size();
    Json one = {{"operator", node.op},
                {"layer", node.layer},
                {"phase", node.phase},
                {"ms", has_time ? ms(times->second[i]) : 0}};
    one.update(json_of(node.use));
    nodes.push_back(std::move(one));
  }
  return {{"process_bytes", memory.of_process}, {"parameters", memory.parameters},
          {"buffers", memory.buffers},          {"optimizer_state", memory.optimizer},
          {"planned", memory.planned},          {"peak", json_of(memory.peak)},
          {"peak_phase", memory.peak_phase},    {"peak_layer", memory.peak_layer},
          {"peak_call", memory.peak_call},      {"layers", std::move(layers)},
          {"nodes", std::move(nodes)}};
}

Json json_of(const ProcessCounts& counts, const CounterRates& rates) {
  Json object = Json::object();
  for (const auto& [name, count] : counts.values) object[name] = count;
  const auto add = [&](const char* name, const std::optional<double>& rate) {
    if (rate) object[name] = *rate;
  };
  add("instructions_per_cycle", rates.instructions_per_cycle);
  add("stalled_frontend_fraction", rates.stalled_frontend);
  add("stalled_backend_fraction", rates.stalled_backend);
  add("llc_bytes_per_second", rates.llc_bytes_per_second);
  if (!counts.why_no_hardware.empty()) object["why_no_hardware"] = counts.why_no_hardware;
  return object;
}

template <typename List>
Json list_of(const List& list, const Profile& profile) {
  Json all = Json::array();
  for (const auto& one : list) all.push_back(json_of(one, profile));
  return all;
}

}  // namespace

std::string profile_json(const Profile& profile, const MachinePeaks& peaks) {
  Json object = {{"first_step", profile.first_step},
                 {"steps", profile.steps},
                 {"samples", profile.samples},
                 {"step_ms", ms(profile.seconds)},
                 {"median_ms", ms(profile.median)},
                 {"p95_ms", ms(profile.p95)},
                 {"slowest_ms", ms(profile.slowest)},
                 {"slowest_step", profile.slowest_step},
                 {"compilation_ms", ms(profile.compilation)},
                 {"limit_ms", ms(profile.limit)},
                 {"flops", profile.flops},
                 {"flops_utilization", profile.flops_utilization},
                 {"phases", list_of(profile.phases, profile)},
                 {"layers", list_of(profile.layers, profile)},
                 {"operators", list_of(profile.operators, profile)},
                 {"memory", json_of(profile.memory, profile)},
                 {"loader",
                  {{"threads", profile.loader.threads},
                   {"busy_fraction", profile.loader.busy},
                   {"parts", list_of(profile.loader.parts, profile)}}},
                 {"counters", json_of(profile.counts, rates_of(profile))},
                 {"peaks",
                  {{"flops_per_second", peaks.flops_per_second},
                   {"bytes_per_second", peaks.bytes_per_second}}}};
  if (!profile.why_no_layers.empty()) object["why_no_layers"] = profile.why_no_layers;
  if (!profile.ranks.empty()) {
    object["ranks"] = list_of(profile.ranks, profile);
    object["rank_skew"] = rank_skew(profile.ranks);
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gallop::profile
