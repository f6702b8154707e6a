#include "gallop/app/model_facts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gallop/app/profile_facts.h"
#include "gallop/app/shape_trials.h"

namespace gallop::app {

namespace {

using compile::GraphListing;
using compile::ListedArgument;
using compile::ListedNode;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_batch_norm(const ListedNode& node) { return contains(node.op, "batch_norm"); }

// The tensor that a view is of: "fc.weight" for "fc.weight^T", "%12" for "%12[64x128]".
std::string tensor_of(const std::string& view) { return view.substr(0, view.find_first_of("[^")); }

// What a value passes through unchanged, but for its format.
bool is_conversion(const ListedNode& node) {
  constexpr std::array kConversions = {"aten::_to_copy", "aten::clone", "aten::copy",
                                       "aten::copy_"};
  return std::find(kConversions.begin(), kConversions.end(), node.op) != kConversions.end();
}

// The nodes of a graph by what they compute and read.
class Values {
 public:
  explicit Values(const GraphListing& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const auto& result : graph.nodes[i].results) {
        if (result.is_new) maker_[tensor_of(result.name)] = i;
      }
      for (const ListedArgument& argument : graph.nodes[i].arguments) {
        for (const std::string& value : argument.values) {
          readers_[tensor_of(value)].push_back(i);
        }
      }
    }
  }

  // Null for a tensor that the graph is given.
  const ListedNode* maker_of(const std::string& tensor) const {
    const auto found = maker_.find(tensor);
    return found == maker_.end() ? nullptr : &graph_.nodes[found->second];
  }

  // The tensor before conversions.
  std::string origin_of(std::string tensor) const {
    for (const ListedNode* node = maker_of(tensor); node != nullptr && is_conversion(*node);
         node = maker_of(tensor)) {
      if (node->arguments.empty() || node->arguments.front().values.empty()) break;
      tensor = tensor_of(node->arguments.front().values.front());
    }
    return tensor;
  }

  bool is_read_by_batch_norms_alone(const std::string& tensor) const {
    const auto found = readers_.find(tensor);
    return found != readers_.end() &&
           std::all_of(found->second.begin(), found->second.end(),
                       [&](size_t node) { return is_batch_norm(graph_.nodes[node]); });
  }

 private:
  const GraphListing& graph_;
  std::map<std::string, size_t> maker_;
  std::map<std::string, std::vector<size_t>> readers_;
};

// The bias that a layer adds: a parameter among what its node is given.
std::string bias_of(const ListedNode& layer, const Values& values,
                    const std::set<std::string>& parameters) {
  for (const ListedArgument& argument : layer.arguments) {
    for (const std::string& value : argument.values) {
      const std::string origin = values.origin_of(tensor_of(value));
      if (origin.ends_with("bias") && parameters.contains(origin)) return origin;
    }
  }
  return {};
}

std::vector<std::string> biases_before_norm(const GraphListing& graph,
                                            const std::set<std::string>& parameters) {
  const Values values(graph);
  std::vector<std::string> found;
  for (const ListedNode& norm : graph.nodes) {
    if (!is_batch_norm(norm) || contains(norm.op, "backward") || norm.arguments.empty()) continue;
    const std::string input = tensor_of(norm.arguments.front().values.front());
    const ListedNode* layer = values.maker_of(input);
    if (layer == nullptr || layer->work.flops <= 0) continue;
    if (!values.is_read_by_batch_norms_alone(input)) continue;
    std::string bias = bias_of(*layer, values, parameters);
    if (!bias.empty()) found.push_back(std::move(bias));
  }
  return found;
}

}  // namespace

advise::ModelFacts facts_of_graph(const GraphListing& recorded, const NamedTensors& parameters) {
  std::set<std::string> changed;
  for (const ListedNode& node : recorded.nodes) {
    for (const auto& result : node.results) {
      if (!result.is_new) changed.insert(tensor_of(result.name));
    }
  }
  advise::ModelFacts facts;
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    names.insert(name);
    if (changed.contains(name)) continue;
    facts.unused_parameters.push_back(name);
    facts.unused_bytes += static_cast<int64_t>(tensor.nbytes());
  }
  if (facts.unused_parameters.size() == parameters.size()) return {};
  facts.biases_before_norm = biases_before_norm(recorded, names);
  return facts;
}

advise::ModelFacts find_model_facts(Session& session, const profile::Profile& profile) {
  const compile::GraphStages recorded = record_step(session);
  if (!recorded.refusal.empty()) return {};
  advise::ModelFacts facts =
      facts_of_graph(recorded.stages.front().listing, session.model().parameters());
  facts.shapes = time_layer_shapes(session, profile);
  return facts;
}

}  // namespace gallop::app
