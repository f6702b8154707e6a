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

bool Aliases::add(const Node& node) {
  const auto op = find_operator(node);
  if (node.kind != Node::Kind::kOperator || !op) return false;
  bool writes = false;
  for (const c10::Argument& argument : op->schema().arguments()) {
    if (argument.alias_info() == nullptr) continue;
    const Argument* const given = find_argument(node, argument.name());
    if (given == nullptr || !contains(tensor_name_of(*given))) continue;
    writes = writes || argument.alias_info()->isWrite();
    for (const Argument& output : node.outputs) {
      visit_names(
          output, [&](const TensorName& tensor) { names_.insert(tensor.name); },
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

/// Follows which inputs each tensor shares memory with, in one pass over the nodes.
class Writes {
 public:
  explicit Writes(const Names& inputs) {
    for (const std::string& input : inputs) roots_[input] = {input};
  }

  void add(const Node& node) {
    if (node.kind == Node::Kind::kRegion) {
      for (const NamedArgument& input : node.inputs) mark(tensor_name_of(input.value));
    }
    if (node.kind != Node::Kind::kOperator) return;
    if (updates_statistics(node)) {
      for (const char* const name : {"running_mean", "running_var"}) {
        const Argument* const value = find_argument(node, name);
        if (value != nullptr) mark(tensor_name_of(*value));
      }
    }
    const auto op = find_operator(node);
    if (!op) return;
    for (const c10::Argument& argument : op->schema().arguments()) {
      if (argument.alias_info() == nullptr) continue;
      const Argument* const value = find_argument(node, argument.name());
      const auto found = value == nullptr ? roots_.end() : roots_.find(tensor_name_of(*value));
      if (found == roots_.end()) continue;
      const Names roots = found->second;
      if (argument.alias_info()->isWrite()) written_.insert(roots.begin(), roots.end());
      for (const Argument& output : node.outputs) {
        visit_names(
            output,
            [&](const TensorName& tensor) {
              roots_[tensor.name].insert(roots.begin(), roots.end());
            },
            [](const ScalarName&) {});
      }
    }
  }

  const Names& written() const { return written_; }

 private:
  void mark(const std::string& name) {
    const auto found = roots_.find(name);
    if (found != roots_.end()) written_.insert(found->second.begin(), found->second.end());
  }

  std::unordered_map<std::string, Names> roots_;
  Names written_;
};

}  // namespace

Names written_inputs(const Program& program, InputSpec::Kind kind) {
  std::unordered_map<std::string, std::string> names;
  Names inputs;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != kind) continue;
    names[tensor_name_of(input.value)] = input.name;
    inputs.insert(tensor_name_of(input.value));
  }
  Writes writes(inputs);
  for (const Node& node : program.graph.nodes) writes.add(node);
  Names written;
  for (const std::string& value : writes.written()) written.insert(names.at(value));
  return written;
}

}  // namespace gallop::model::exported
