#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// Calls `visit(name, is_tensor)` for every value that an argument names.
template <typename Visit>
void visit_values(const Argument& argument, const Visit& visit) {
  visit_names(
      argument, [&](const TensorName& tensor) { visit(tensor.name, true); },
      [&](const ScalarName& scalar) { visit(scalar.name, false); });
}

/// As visit_values(), for what a node reads.
template <typename Visit>
void visit_reads(const Node& node, const Visit& visit) {
  for (const NamedArgument& input : node.inputs) visit_values(input.value, visit);
}

/// As visit_values(), for what a node makes.
template <typename Visit>
void visit_results(const Node& node, const Visit& visit) {
  for (const Argument& output : node.outputs) visit_values(output, visit);
}

/// Whether a module is in a list: "layers.0".
inline bool is_in_list(std::string_view fqn) {
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  return !last.empty() && std::all_of(last.begin(), last.end(), [](unsigned char letter) {
    return std::isdigit(letter) != 0;
  });
}

/// The innermost module in a list that a node belongs to; empty for none.
inline std::string_view list_item_of(const Node& node) {
  for (auto frame = node.modules.rbegin(); frame != node.modules.rend(); ++frame) {
    if (is_in_list(frame->fqn)) return frame->fqn;
  }
  return {};
}

}  // namespace gallop::model::exported
