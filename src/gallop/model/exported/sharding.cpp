#include "gallop/model/exported/sharding.h"

#include "gallop/model/exported/node_sharder.h"

namespace gallop::model::exported {

namespace {

// Whether an argument has its default value of 1, or is given as that.
bool is_one(const Node& node, const char* name) {
  const Argument* const given = find_argument(node, name);
  return given == nullptr || *given == Argument(int64_t{1}) || *given == Argument(1.0);
}

}  // namespace

std::optional<LinearCall> find_linear_call(const Graph& graph, const Node& node) {
  if (node.kind != Node::Kind::kOperator || !node.overload.empty()) return std::nullopt;
  const auto tensor = [&](const char* name) { return tensor_argument(node, name); };
  LinearCall call{.in_dim = 0, .out_dim = 1};
  if (node.function == "aten::linear") {
    call = {.input = tensor("input"),
            .weight = tensor("weight"),
            .bias = tensor("bias"),
            .in_dim = 1,
            .out_dim = 0};
  } else if (node.function == "aten::addmm" && is_one(node, "beta") && is_one(node, "alpha")) {
    call.bias = tensor("self");
    call.input = tensor("mat1");
    call.weight = tensor("mat2");
  } else if (node.function == "aten::mm") {
    call.input = tensor("self");
    call.weight = tensor("mat2");
  } else if (node.function == "aten::matmul") {
    call.input = tensor("self");
    call.weight = tensor("other");
  }
  if (rank_of(graph, call.weight) != 2 || rank_of(graph, call.input) < 2) return std::nullopt;
  if (call.bias.empty()) return call;
  const auto& weight = graph.tensors.at(call.weight).sizes;
  const auto& bias = graph.tensors.at(call.bias).sizes;
  const bool is_whole =
      bias.size() == 1 && is_same(bias.front(), weight[static_cast<size_t>(call.out_dim)]);
  return is_whole ? std::optional(call) : std::nullopt;
}

bool is_look_up(const Node& node, const std::string& table) {
  const auto is_off = [&](const char* name) {
    const Argument* const given = find_argument(node, name);
    return given == nullptr || *given == Argument(false);
  };
  return node.function == "aten::embedding" && tensor_argument(node, "weight") == table &&
         is_off("scale_grad_by_freq") && is_off("sparse");
}

std::optional<ShardedNode> shard_node(const Graph& graph, const Node& node, const Shards& shards,
                                      int64_t processes, std::string& problem) {
  problem.clear();
  return NodeSharder(graph, node, shards, processes, problem).run();
}

}  // namespace gallop::model::exported
