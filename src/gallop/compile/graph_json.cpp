#include "gallop/compile/graph_json.h"

#include <nlohmann/json.hpp>

namespace gallop::compile {

namespace {

nlohmann::ordered_json json_of(const ListedOperator& all, const GraphListing& listing) {
  return {{"name", all.op},
          {"count", all.count},
          {"ms", 1e3 * all.seconds},
          {"fraction", listing.share_of(all.seconds)}};
}

nlohmann::ordered_json json_of(const ListedNode& node, const GraphListing& listing) {
  nlohmann::ordered_json object = {{"number", node.number},
                                   {"ms", 1e3 * node.seconds},
                                   {"fraction", listing.share_of(node.seconds)},
                                   {"kind", name_of(node.kind)},
                                   {"operator", node.op},
                                   {"results", nlohmann::ordered_json::array()},
                                   {"writes", nlohmann::ordered_json::array()},
                                   {"arguments", nlohmann::ordered_json::array()},
                                   {"makers", node.makers},
                                   {"places", nlohmann::ordered_json::array()},
                                   {"flops", node.work.flops},
                                   {"bytes", node.work.bytes}};
  for (const NodePlace& place : node.places) {
    object["places"].push_back(
        {{"phase", place.phase}, {"layer", place.layer}, {"share", place.share}});
  }
  if (!node.parts.empty()) object["parts"] = node.parts;
  for (const ListedTensor& result : node.results) {
    object[result.is_new ? "results" : "writes"].push_back(
        {{"name", result.name}, {"format", result.format}});
  }
  for (const ListedArgument& argument : node.arguments) {
    nlohmann::ordered_json one;
    if (!argument.name.empty()) one["name"] = argument.name;
    if (argument.is_list) {
      one["values"] = argument.values;
    } else {
      one["value"] = argument.values.front();
    }
    object["arguments"].push_back(std::move(one));
  }
  return object;
}

nlohmann::ordered_json json_of(const ListedLayer& layer, const GraphListing& listing) {
  return {{"name", layer.name},
          {"ms", 1e3 * layer.seconds()},
          {"fraction", listing.share_of(layer.seconds())},
          {"forward_ms", 1e3 * layer.forward},
          {"backward_ms", 1e3 * layer.backward},
          {"flops", layer.flops},
          {"bytes", layer.bytes}};
}

nlohmann::ordered_json sizes_json(const GraphListing& listing) {
  return {{"ms", 1e3 * listing.seconds},
          {"runs", listing.runs},
          {"planned_bytes", listing.planned_bytes},
          {"most_in_use_bytes", listing.most_in_use_bytes}};
}

}  // namespace

nlohmann::ordered_json graph_json(const GraphListing& listing) {
  nlohmann::ordered_json object = sizes_json(listing);
  for (const char* list : {"kinds", "operators", "layers", "nodes"}) {
    object[list] = nlohmann::ordered_json::array();
  }
  for (const auto& kind : listing.kinds()) object["kinds"].push_back(json_of(kind, listing));
  for (const auto& all : listing.operators) object["operators"].push_back(json_of(all, listing));
  for (const auto& layer : listing.layers) object["layers"].push_back(json_of(layer, listing));
  for (const auto& node : listing.nodes) object["nodes"].push_back(json_of(node, listing));
  return object;
}

nlohmann::ordered_json stages_json(const std::vector<GraphStage>& stages) {
  auto array = nlohmann::ordered_json::array();
  const GraphListing* before = nullptr;
  for (const auto& [name, listing] : stages) {
    nlohmann::ordered_json object = {{"pass", name}, {"nodes", listing.nodes.size()}};
    object.update(sizes_json(listing));
    object["changes"] = nlohmann::ordered_json::object();
    if (before != nullptr) {
      for (const auto& [op, change] : changes_of(*before, listing)) object["changes"][op] = change;
    }
    array.push_back(std::move(object));
    before = &listing;
  }
  return array;
}

}  // namespace gallop::compile
