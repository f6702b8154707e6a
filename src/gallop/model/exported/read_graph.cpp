#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/exported/regions.h"
#include "gallop/model/exported/scalar_functions.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

template <typename Inputs>
auto find_in(Inputs& inputs, std::string_view name) -> decltype(&inputs.front().value) {
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const auto& input) { return input.name == name; });
  return found == inputs.end() ? nullptr : &found->value;
}

std::string at_source(const Node& node) {
  const std::string source = node.source.text();
  return source.empty() ? "" : fmt::format(" ({})", source);
}

// Functions of Python that stay calls in the graph, which torch 2.15 stores.
bool is_transform(std::string_view target) {
  constexpr std::array kModules = {"torch._functorch.", "torch._C._functorch.", "torch.func."};
  return target == "torch.vmap" ||
         std::any_of(kModules.begin(), kModules.end(),
                     [&](const char* module) { return target.starts_with(module); });
}

void read_target(Node& node, std::string_view target, const Place& file) {
  constexpr std::string_view kHigherOrder = "torch.ops.higher_order.", kOperators = "torch.ops.";
  const auto reject = [&](const std::string& what, const std::string& why) {
    file.fail(
        fmt::format("node '{}' calls {}{}{}", printable(node.name), what, at_source(node), why));
  };
  if (target.starts_with(kHigherOrder)) {
    const std::string_view name = target.substr(kHigherOrder.size());
    if (!contains(region_names(), name)) {
      reject(fmt::format("the higher-order operator {}", printable(name)),
             fmt::format("; supported are {}", fmt::join(region_names(), ", ")));
    }
    node.kind = Node::Kind::kRegion;
    node.function = name;
    return;
  }
  if (target.starts_with(kOperators)) {
    const std::string_view path = target.substr(kOperators.size());
    const size_t first = path.find('.'), last = path.rfind('.');
    if (first == std::string_view::npos || first == last || first == 0 || last + 1 == path.size() ||
        path.find('.', first + 1) != last || last == first + 1) {
      reject(fmt::format("'{}'", printable(target)), "; operators are NAMESPACE.NAME.OVERLOAD");
    }
    node.function =
        fmt::format("{}::{}", path.substr(0, first), path.substr(first + 1, last - first - 1));
    node.overload = path.substr(last + 1);
    if (node.overload == "default") node.overload.clear();
    return;
  }
  if (is_transform(target)) {
    reject(fmt::format("'{}'", printable(target)),
           ": torch.export does not turn torch.vmap, the transforms of torch.func and "
           "flex_attention into operators; write the model with a batch dimension instead, and "
           "attention by scaled_dot_product_attention");
  }
  const std::string_view name = target.substr(target.rfind('.') + 1);
  const ScalarFunction* const function = find_scalar_function(name);
  if (function == nullptr || function->target != target) {
    reject(fmt::format("'{}'", printable(target)),
           ", which is neither an operator of LibTorch nor a function of scalars");
  }
  node.kind = Node::Kind::kScalarFunction;
  node.function = name;
}

void read_metadata(Node& node, const Json& json, const Place& place) {
  const Json* metadata = optional_member(json, "metadata", place);
  if (metadata == nullptr) return;
  if (const Json* trace = optional_member(*metadata, "stack_trace", place)) {
    node.source = read_source_line(to_text(*trace, "'stack_trace'", place));
  }
  if (const Json* stack = optional_member(*metadata, "nn_module_stack", place)) {
    node.modules = read_module_stack(to_text(*stack, "'nn_module_stack'", place));
  }
}

NamedArgument read_input(const Json& json, const Place& place, const Place& file, int depth) {
  constexpr int64_t kKeyword = 2;
  NamedArgument input{.name = text_member(json, "name", place), .value = {}};
  const Place at = place.within(
      input.name.empty() ? "an argument" : fmt::format("argument '{}'", printable(input.name)));
  input.value = read_argument(member(json, "arg", at), at, file, depth);
  if (const Json* kind = optional_member(json, "kind", at)) {
    input.is_keyword = to_integer(*kind, "'kind'", at) == kKeyword;
  }
  return input;
}

// Graphs are arguments of regions alone, and all other arguments have different names.
void check_inputs(const Node& node, const Place& place) {
  std::set<std::string_view> names;
  bool has_graph = false;
  for (const NamedArgument& input : node.inputs) {
    const bool is_graph = std::holds_alternative<Subgraph>(input.value);
    if (node.kind == Node::Kind::kRegion) {
      has_graph = has_graph || is_graph;
      continue;
    }
    if (is_graph) place.fail(fmt::format("argument '{}' is a graph", printable(input.name)));
    if (!names.insert(input.name).second) {
      place.fail(fmt::format("argument '{}' is given twice", printable(input.name)));
    }
  }
  if (node.kind == Node::Kind::kRegion && !has_graph) place.fail("no graph is given");
}

void check_output(const Argument& output, const Place& place) {
  if (std::holds_alternative<std::monostate>(output) ||
      std::holds_alternative<TensorName>(output) || std::holds_alternative<ScalarName>(output) ||
      std::holds_alternative<std::vector<TensorName>>(output)) {
    return;
  }
  place.fail("a result is neither a tensor, a list of tensors nor a scalar");
}

// The name of the first result, which torch gives to the node as well; empty if there is none.
std::string name_of_result(const Json& json, const Place& place) {
  const Json* outputs = optional_member(json, "outputs", place);
  if (outputs == nullptr || !outputs->is_array()) return {};
  for (const Json& output : *outputs) {
    // It is the only text, as in {"as_tensor": {"name": "add"}} or {"as_sym_int": {"as_name":
    // "mul"}}.
    const Json* value = &output;
    while (value->is_structured() && !value->empty()) value = &value->front();
    if (value->is_string()) return value->get<std::string>();
  }
  return {};
}

Node read_node(const Json& json, const Place& file, int depth) {
  const Place anonymous = file.within("a node");
  Node node;
  const std::string target = text_member(json, "target", anonymous);
  if (const Json* name = optional_member(json, "name", anonymous)) {
    node.name = to_text(*name, "'name'", anonymous);
  } else {
    // The file was written by torch 2.10 or older.
    node.name = name_of_result(json, anonymous);
    if (node.name.empty()) node.name = target;
  }
  read_metadata(node, json, file.within(fmt::format("node '{}'", printable(node.name))));
  read_target(node, target, file);
  const Place place = file.within(describe(node));
  for (const Json& input : list_member(json, "inputs", place)) {
    node.inputs.push_back(read_input(input, place, file, depth));
  }
  for (const Json& output : list_member(json, "outputs", place)) {
    node.outputs.push_back(read_argument(output, place, file, depth));
    check_output(node.outputs.back(), place);
  }
  check_inputs(node, place);
  if (const Json* single = optional_member(json, "is_hop_single_tensor_return", place)) {
    node.returns_single_tensor = to_boolean(*single, "'is_hop_single_tensor_return'", place);
  }
  return node;
}

std::vector<Argument> read_arguments(const Json& json, const char* key, const Place& file,
                                     int depth) {
  std::vector<Argument> arguments;
  const Place place = file.within(fmt::format("the {} of a graph", key));
  for (const Json& argument : list_member(json, key, place)) {
    arguments.push_back(read_argument(argument, place, file, depth));
    if (std::holds_alternative<Subgraph>(arguments.back())) place.fail("a graph among them");
  }
  return arguments;
}

// The scalars of one type that the graph computes; older files lack some of the tables.
void read_scalar_names(const Json& json, const char* key, const Place& file,
                       std::unordered_set<std::string>& names) {
  const Json* values = optional_member(json, key, file);
  if (values == nullptr) return;
  for (const auto& item : to_object(*values, key, file).items()) names.insert(item.key());
}

}  // namespace

const Argument* find_argument(const Node& node, std::string_view name) {
  return find_in(node.inputs, name);
}

Argument* find_argument(Node& node, std::string_view name) { return find_in(node.inputs, name); }

std::string describe(const Node& node) {
  std::string call = node.overload.empty() ? node.function : node.function + "." + node.overload;
  if (const std::string source = node.source.text(); !source.empty()) call += " at " + source;
  return fmt::format("node '{}' ({})", printable(node.name), printable(call));
}

Graph read_graph(const Json& json, const Place& file, int depth) {
  Graph graph;
  if (const Json* objects = optional_member(json, "custom_obj_values", file);
      objects != nullptr && !objects->empty()) {
    const Json& first = objects->front();
    const Json* name = first.is_object() ? optional_member(first, "class_fqn", file) : nullptr;
    const std::string type =
        name != nullptr && name->is_string() ? printable(name->get<std::string>()) : "unknown";
    file.fail(
        fmt::format("calls operators with an object of the class '{}', which is not supported; "
                    "give them tensors and numbers alone",
                    type));
  }
  for (const auto& item : object_member(json, "tensor_values", file).items()) {
    const Place place = file.within(fmt::format("tensor '{}'", printable(item.key())));
    graph.tensors.emplace(item.key(), read_tensor_meta(item.value(), place));
  }
  if (const Json* integers = optional_member(json, "sym_int_values", file)) {
    for (const auto& item : to_object(*integers, "'sym_int_values'", file).items()) {
      const Place place = file.within(fmt::format("scalar '{}'", printable(item.key())));
      graph.integers.emplace(item.key(), read_size(item.value(), place));
    }
  }
  read_scalar_names(json, "sym_float_values", file, graph.numbers);
  read_scalar_names(json, "sym_bool_values", file, graph.booleans);
  graph.inputs = read_arguments(json, "inputs", file, depth);
  for (const Json& node : list_member(json, "nodes", file)) {
    graph.nodes.push_back(read_node(node, file, depth));
  }
  graph.outputs = read_arguments(json, "outputs", file, depth);
  if (const Json* single = optional_member(json, "is_single_tensor_return", file)) {
    graph.returns_single_tensor = to_boolean(*single, "'is_single_tensor_return'", file);
  }
  check_values(graph, file);
  return graph;
}

}  // namespace gallop::model::exported
