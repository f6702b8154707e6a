#include "gallop/model/exported/aliases.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "gallop/model/exported/find_operator.h"

namespace gallop::model::exported {

std::string tensor_name_of(const Argument& argument) {
  const auto* const tensor = std::get_if<TensorName>(&argument);
  return tensor == nullptr ? std::string() : tensor->name;
}

Aliases::Aliases(const Names& inputs) {
  for (const std::string& input : inputs) roots_[input] = {input};
}

void Aliases::mark_written(const std::string& name) {
  const auto found = roots_.find(name);
  if (found != roots_.end()) written_.insert(found->second.begin(), found->second.end());
}

bool Aliases::is_written(const std::string& name) const {
  const auto found = roots_.find(name);
  return found != roots_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [this](const std::string& root) { return written_.contains(root); });
}

void Aliases::add_views(const std::string& tensor, const Node& node) {
  const Names roots = roots_.at(tensor);
  for (const Argument& output : node.outputs) {
    visit_names(
        output,
        [&](const TensorName& view) { roots_[view.name].insert(roots.begin(), roots.end()); },
        [](const ScalarName&) {});
  }
}

// The results of a region may be views of any of its arguments.
bool Aliases::add_region(const Node& node) {
  const bool can_write = writes_arguments(node);
  bool writes = false;
  const auto add_argument = [&](const TensorName& tensor) {
    if (!contains(tensor.name)) return;
    if (can_write) mark_written(tensor.name);
    writes |= can_write;
    add_views(tensor.name, node);
  };
  for (const NamedArgument& input : node.inputs) {
    visit_names(input.value, add_argument, [](const ScalarName&) {});
  }
  return writes;
}

bool Aliases::add(const Node& node) {
  if (node.kind == Node::Kind::kRegion) return add_region(node);
  const auto op = find_operator(node);
  if (node.kind != Node::Kind::kOperator || !op) return false;
  add_statistics(node);
  bool is_written = false;
  visit_aliased(node, *op, [&](const Argument& given, bool writes) {
    const auto add_argument = [&](const TensorName& tensor) {
      if (!contains(tensor.name)) return;
      if (writes) mark_written(tensor.name);
      is_written |= writes;
      add_views(tensor.name, node);
    };
    visit_names(given, add_argument, [](const ScalarName&) {});
  });
  return is_written;
}

namespace {

// Operators that may return their first argument, or a view of it, of which schemas say nothing.
bool may_return_argument(const Node& node) {
  static constexpr std::array<std::string_view, 11> kNames = {"aten::dropout",
                                                              "aten::feature_dropout",
                                                              "aten::alpha_dropout",
                                                              "aten::type_as",
                                                              "aten::atleast_1d",
                                                              "aten::atleast_2d",
                                                              "aten::atleast_3d",
                                                              "aten::meshgrid",
                                                              "aten::broadcast_tensors",
                                                              "aten::_unsafe_view",
                                                              "aten::feature_alpha_dropout"};
  return std::find(kNames.begin(), kNames.end(), node.function) != kNames.end();
}

}  // namespace

void visit_aliased(const Node& node, const c10::OperatorHandle& op,
                   const std::function<void(const Argument& argument, bool writes)>& visit) {
  bool is_hidden = may_return_argument(node);  // For the first argument.
  for (const c10::Argument& argument : op.schema().arguments()) {
    const Argument* const given = find_argument(node, argument.name());
    const auto* const alias = argument.alias_info();
    if (given != nullptr && (alias != nullptr || is_hidden)) {
      visit(*given, alias != nullptr && alias->isWrite());
    }
    is_hidden = false;
  }
}

bool updates_statistics(const Node& node) {
  const char* const flag = node.function == "aten::batch_norm"      ? "training"
                           : node.function == "aten::instance_norm" ? "use_input_stats"
                                                                    : nullptr;
  if (flag == nullptr) return false;
  const Argument* const value = find_argument(node, flag);
  return value != nullptr && *value == Argument(true);
}

void Aliases::add_statistics(const Node& node) {
  if (!updates_statistics(node)) return;
  for (const char* const name : {"running_mean", "running_var"}) {
    const Argument* const value = find_argument(node, name);
    if (value != nullptr) mark_written(tensor_name_of(*value));
  }
}

bool writes_arguments(const Node& region) {
  for (const NamedArgument& argument : region.inputs) {
    const auto* const subgraph = std::get_if<Subgraph>(&argument.value);
    if (subgraph == nullptr) continue;
    Names inputs;
    for (const Argument& input : subgraph->graph->inputs) inputs.insert(tensor_name_of(input));
    Aliases aliases(inputs);
    for (const Node& node : subgraph->graph->nodes) aliases.add(node);
    if (!aliases.written().empty()) return true;
  }
  return false;
}

Names written_inputs(const Program& program, InputSpec::Kind kind) {
  std::unordered_map<std::string, std::string> names;
  Names inputs;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != kind) continue;
    names[tensor_name_of(input.value)] = input.name;
    inputs.insert(tensor_name_of(input.value));
  }
  Aliases aliases(inputs);
  for (const Node& node : program.graph.nodes) aliases.add(node);
  Names written;
  for (const std::string& value : aliases.written()) written.insert(names.at(value));
  return written;
}

}  // namespace gallop::model::exported
