#include "gallop/model/exported/aliases.h"

#include <algorithm>
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

bool Aliases::add(const Node& node) {
  const auto op = find_operator(node);
  if (node.kind != Node::Kind::kOperator || !op) return false;
  bool writes = false;
  for (const c10::Argument& argument : op->schema().arguments()) {
    if (argument.alias_info() == nullptr) continue;
    const Argument* const given = find_argument(node, argument.name());
    const auto found = given == nullptr ? roots_.end() : roots_.find(tensor_name_of(*given));
    if (found == roots_.end()) continue;
    if (argument.alias_info()->isWrite()) {
      writes = true;
      mark_written(found->first);
    }
    const Names roots = found->second;
    for (const Argument& output : node.outputs) {
      visit_names(
          output,
          [&](const TensorName& tensor) { roots_[tensor.name].insert(roots.begin(), roots.end()); },
          [](const ScalarName&) {});
    }
  }
  return writes;
}

namespace {

// Operators that update running statistics although their schemas do not say so.
bool updates_statistics(const Node& node) {
  const char* const flag = node.function == "aten::batch_norm"      ? "training"
                           : node.function == "aten::instance_norm" ? "use_input_stats"
                                                                    : nullptr;
  if (flag == nullptr) return false;
  const Argument* const value = find_argument(node, flag);
  return value != nullptr && *value == Argument(true);
}

// Writes of which schemas say nothing.
void mark_hidden_writes(const Node& node, Aliases& aliases) {
  if (node.kind == Node::Kind::kRegion) {
    for (const NamedArgument& input : node.inputs) {
      aliases.mark_written(tensor_name_of(input.value));
    }
  }
  if (!updates_statistics(node)) return;
  for (const char* const name : {"running_mean", "running_var"}) {
    const Argument* const value = find_argument(node, name);
    if (value != nullptr) aliases.mark_written(tensor_name_of(*value));
  }
}

}  // namespace

Names written_inputs(const Program& program, InputSpec::Kind kind) {
  std::unordered_map<std::string, std::string> names;
  Names inputs;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != kind) continue;
    names[tensor_name_of(input.value)] = input.name;
    inputs.insert(tensor_name_of(input.value));
  }
  Aliases aliases(inputs);
  for (const Node& node : program.graph.nodes) {
    mark_hidden_writes(node, aliases);
    aliases.add(node);
  }
  Names written;
  for (const std::string& value : aliases.written()) written.insert(names.at(value));
  return written;
}

}  // namespace gallop::model::exported
