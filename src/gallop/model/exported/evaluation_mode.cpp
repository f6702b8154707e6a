#include "gallop/model/exported/evaluation_mode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/random_operators.h"
#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

namespace {

constexpr std::array<std::string_view, 13> kWithTrain = {"aten::dropout",
                                                         "aten::dropout_",
                                                         "aten::feature_dropout",
                                                         "aten::feature_dropout_",
                                                         "aten::alpha_dropout",
                                                         "aten::alpha_dropout_",
                                                         "aten::feature_alpha_dropout",
                                                         "aten::feature_alpha_dropout_",
                                                         "aten::native_dropout",
                                                         "aten::lstm",
                                                         "aten::gru",
                                                         "aten::rnn_tanh",
                                                         "aten::rnn_relu"};

// Sets a flag that is true. Returns whether it was.
bool turn_off(Node& node, std::string_view flag) {
  Argument* const argument = find_argument(node, flag);
  if (argument == nullptr || !std::holds_alternative<bool>(*argument)) return false;
  return std::exchange(*argument, false) != Argument(false);
}

bool has_running_statistics(Node& node) {
  const Argument* const mean = find_argument(node, "running_mean");
  return mean != nullptr && std::holds_alternative<TensorName>(*mean);
}

bool turn_off_probability(Node& node) {
  Argument* const probability = find_argument(node, "dropout_p");
  if (probability == nullptr) return false;
  const bool is_on = *probability != Argument(0.0) && *probability != Argument(int64_t{0});
  *probability = 0.0;
  return is_on;
}

// Whether the operator had training behavior, which is turned off.
bool switch_off(Node& node) {
  const std::string& name = node.function;
  if (std::find(kWithTrain.begin(), kWithTrain.end(), name) != kWithTrain.end()) {
    return turn_off(node, "train");
  }
  if (name == "aten::batch_norm") return has_running_statistics(node) && turn_off(node, "training");
  if (name == "aten::rrelu" || name == "aten::rrelu_") return turn_off(node, "training");
  if (name == "aten::instance_norm") {
    return has_running_statistics(node) && turn_off(node, "use_input_stats");
  }
  if (name == "aten::scaled_dot_product_attention") return turn_off_probability(node);
  return false;
}

// add_(num_batches_tracked, 1), whose result nothing uses.
bool counts_batches(Node& node, const Names& counters, const Names& used) {
  if (node.function != "aten::add_") return false;
  const Argument* const counter = find_argument(node, "self");
  if (counter == nullptr || !counters.contains(tensor_name_of(*counter))) return false;
  return std::none_of(node.outputs.begin(), node.outputs.end(), [&](const Argument& output) {
    return used.contains(tensor_name_of(output));
  });
}

Names used_in(const Graph& graph) {
  Names used;
  const auto add = [&](const Argument& argument) {
    visit_names(
        argument, [&](const TensorName& tensor) { used.insert(tensor.name); },
        [](const ScalarName&) {});
  };
  for (const Node& node : graph.nodes) {
    for (const NamedArgument& input : node.inputs) add(input.value);
  }
  for (const Argument& output : graph.outputs) add(output);
  return used;
}

class Switcher {
 public:
  explicit Switcher(const Program& program) {
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputSpec::Kind::kBuffer) continue;
      buffers_.insert(tensor_name_of(input.value));
      if (input.name.ends_with("num_batches_tracked"))
        counters_.insert(tensor_name_of(input.value));
    }
  }

  // Tensors of the surrounding graph have other names in a region.
  Graph switched(Graph graph, const Names& buffers, const Names& counters) {
    const Names used = used_in(graph);
    Aliases aliases(buffers);
    std::vector<Node> nodes;
    for (Node& node : graph.nodes) {
      if (counts_batches(node, counters, used)) {
        count("num_batches_tracked");
        continue;
      }
      if (node.kind == Node::Kind::kRegion) {
        switch_region(node, aliases, counters);
        aliases.add(node);  // Its results may be views; writes within it were found there.
      } else if (node.kind == Node::Kind::kOperator) {
        const bool writes = aliases.add(node);
        if (switch_off(node)) {
          count(node.function.substr(node.function.find("::") + 2));
        } else if (writes || draws(node)) {
          result_.unknown.push_back(describe(node));
        }
      }
      nodes.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes);
    return graph;
  }

  EvaluationProgram run(const Program& program) {
    result_.program = program;
    result_.program.graph = switched(program.graph, buffers_, counters_);
    return std::move(result_);
  }

 private:
  void count(const std::string& name) {
    const auto found = std::find_if(result_.switched.begin(), result_.switched.end(),
                                    [&](const SwitchedOperator& one) { return one.name == name; });
    if (found == result_.switched.end()) {
      result_.switched.push_back({.name = name, .count = 1});
    } else {
      found->count += 1;
    }
  }

  // The inputs of a region's graph are its last arguments, or the operands of a cond.
  void switch_region(Node& node, const Aliases& aliases, const Names& counters) {
    std::vector<std::string> arguments;
    for (const NamedArgument& input : node.inputs) {
      const auto add = [&](const auto& value) { arguments.push_back(value.name); };
      visit_names(input.value, add, add);
    }
    for (NamedArgument& input : node.inputs) {
      auto* const subgraph = std::get_if<Subgraph>(&input.value);
      if (subgraph == nullptr) continue;
      const Graph& inner = *subgraph->graph;
      Names inner_aliases, inner_counters;
      const size_t count = std::min(inner.inputs.size(), arguments.size());
      for (size_t i = 0; i < count; ++i) {
        const std::string& outer = arguments[arguments.size() - count + i];
        const std::string own = tensor_name_of(inner.inputs[inner.inputs.size() - count + i]);
        if (aliases.contains(outer)) inner_aliases.insert(own);
        if (counters.contains(outer)) inner_counters.insert(own);
      }
      subgraph->graph =
          std::make_shared<const Graph>(switched(inner, inner_aliases, inner_counters));
    }
  }

  Names buffers_, counters_;
  EvaluationProgram result_;
};

}  // namespace

std::string EvaluationProgram::problem() const {
  return fmt::format(
      "was exported for training alone, and {} operators draw random numbers or write buffers, "
      "whose use in evaluation is not known (first: {}); export both modes as \"train\" and "
      "\"eval\", see docs/exported.md",
      unknown.size(), unknown.front());
}

EvaluationProgram switch_to_evaluation(const Program& program) {
  return Switcher(program).run(program);
}

std::string first_draw(const Graph& graph, c10::Device device) {
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::kOperator && draws(node) &&
        find_random_operator(node, device) == nullptr) {
      return describe(node);
    }
    for (const NamedArgument& input : node.inputs) {
      const auto* const subgraph = std::get_if<Subgraph>(&input.value);
      if (subgraph == nullptr) continue;
      std::string inner = first_draw(*subgraph->graph, device);
      if (!inner.empty()) return inner;
    }
  }
  return {};
}

}  // namespace gallop::model::exported
