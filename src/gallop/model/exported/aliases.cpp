#include "gallop/model/exported/aliases.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>

namespace gallop::model::exported {

std::string tensor_name_of(const Argument& argument) {
  const auto* const tensor = std::get_if<TensorName>(&argument);
  return tensor == nullptr ? std::string() : tensor->name;
}

bool Aliases::add(const Node& node) {
  const auto op = c10::Dispatcher::singleton().findSchema({node.function, node.overload});
  if (node.kind != Node::Kind::kOperator || !op) return false;
  bool writes = false;
  for (const c10::Argument& argument : op->schema().arguments()) {
    if (argument.alias_info() == nullptr) continue;
    const auto given =
        std::find_if(node.inputs.begin(), node.inputs.end(),
                     [&](const NamedArgument& input) { return input.name == argument.name(); });
    if (given == node.inputs.end() || !contains(tensor_name_of(given->value))) continue;
    writes = writes || argument.alias_info()->isWrite();
    for (const Argument& output : node.outputs) {
      visit_names(
          output, [&](const TensorName& tensor) { names_.insert(tensor.name); },
          [](const ScalarName&) {});
    }
  }
  return writes;
}

bool writes_user_inputs(const Program& program) {
  Names names;
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputSpec::Kind::kUserInput) names.insert(tensor_name_of(input.value));
  }
  Aliases aliases(std::move(names));
  bool writes = false;
  for (const Node& node : program.graph.nodes) {
    if (aliases.add(node)) writes = true;
    // What a region does with its arguments is not followed.
    for (const NamedArgument& input : node.inputs) {
      if (node.kind == Node::Kind::kRegion && aliases.contains(tensor_name_of(input.value)))
        writes = true;
    }
  }
  return writes;
}

}  // namespace gallop::model::exported
