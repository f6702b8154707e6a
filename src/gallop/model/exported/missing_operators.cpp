#include "gallop/model/exported/missing_operators.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "gallop/model/exported/find_operator.h"

namespace gallop::model::exported {

namespace {

// Whether LibTorch has the operator in any overload.
bool has_overload(const std::string& function) {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  return std::any_of(names.begin(), names.end(),
                     [&](const c10::OperatorName& name) { return name.name == function; });
}

}  // namespace

std::string missing_text(const Node& node) {
  constexpr std::string_view kNamespace = "aten::";
  if (node.function.starts_with(kNamespace)) {
    const std::string what = "calls an operator that LibTorch " TORCH_VERSION " does not have: ";
    // Then this version has the function of torch, too, and exports it with another overload.
    if (has_overload(node.function)) {
      return what + "export the model with torch " TORCH_VERSION;
    }
    // The others have the names of functions of torch, but for those with an underscore.
    return what + "write the model without it" +
           (node.function[kNamespace.size()] == '_'
                ? "; if torch " TORCH_VERSION
                  " has the function in this line, it is enough to export with that version"
                : "");
  }
  return "calls an operator that LibTorch does not have: operators of Python packages cannot be "
         "trained; export the model without it";
}

bool is_dropped(const Node& node) { return node.function == "aten::_assert_tensor_metadata"; }

std::vector<std::string> missing_operators(const Graph& graph) {
  std::vector<std::string> missing;
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::kOperator && !is_dropped(node) && !find_operator(node)) {
      missing.push_back(fmt::format("{} {}", describe(node), missing_text(node)));
    }
    for (const NamedArgument& input : node.inputs) {
      const auto* const subgraph = std::get_if<Subgraph>(&input.value);
      if (subgraph == nullptr) continue;
      for (std::string& one : missing_operators(*subgraph->graph)) {
        missing.push_back(std::move(one));
      }
    }
  }
  return missing;
}

}  // namespace gallop::model::exported
