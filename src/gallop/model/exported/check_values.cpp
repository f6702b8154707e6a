#include <unordered_map>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

enum class Kind { kTensor, kScalar };

// The values that are defined so far.
class Values {
 public:
  explicit Values(const Graph& graph) : graph_(graph) {}

  void define(const Argument& argument, const Place& place) {
    visit_names(
        argument, [&](const TensorName& tensor) { define(tensor.name, Kind::kTensor, place); },
        [&](const ScalarName& scalar) { define(scalar.name, Kind::kScalar, place); });
  }

  void use(const Argument& argument, const Place& place) const {
    visit_names(
        argument, [&](const TensorName& tensor) { use(tensor.name, Kind::kTensor, place); },
        [&](const ScalarName& scalar) { use(scalar.name, Kind::kScalar, place); });
  }

 private:
  void define(const std::string& name, Kind kind, const Place& place) {
    const bool is_listed = kind == Kind::kTensor
                               ? graph_.tensors.contains(name)
                               : graph_.integers.contains(name) || graph_.numbers.contains(name) ||
                                     graph_.booleans.contains(name);
    if (!is_listed) {
      place.fail(fmt::format("value '{}' is in no table of the graph's values", printable(name)));
    }
    if (!kinds_.emplace(name, kind).second) {
      place.fail(fmt::format("value '{}' is defined twice", printable(name)));
    }
  }

  void use(const std::string& name, Kind kind, const Place& place) const {
    const auto found = kinds_.find(name);
    if (found == kinds_.end()) {
      place.fail(fmt::format("value '{}' is used before it is defined", printable(name)));
    }
    if (found->second != kind) {
      place.fail(fmt::format("value '{}' is not a {}", printable(name),
                             kind == Kind::kTensor ? "tensor" : "scalar"));
    }
  }

  const Graph& graph_;
  std::unordered_map<std::string, Kind> kinds_;
};

}  // namespace

void check_values(const Graph& graph, const Place& file) {
  Values values(graph);
  const Place inputs = file.within("the inputs of a graph");
  for (const Argument& input : graph.inputs) values.define(input, inputs);
  for (const Node& node : graph.nodes) {
    const Place place = file.within(describe(node));
    for (const NamedArgument& input : node.inputs) values.use(input.value, place);
    for (const Argument& output : node.outputs) values.define(output, place);
  }
  const Place outputs = file.within("the outputs of a graph");
  for (const Argument& output : graph.outputs) values.use(output, outputs);
}

}  // namespace gallop::model::exported
