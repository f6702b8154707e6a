#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// The tensors of a graph of which each process has a part, by name. The others are whole in each.
using Shards = std::unordered_map<std::string, Shard>;

/// A node that computes a linear layer: input [.., in], weight of two dimensions, bias [out].
struct LinearCall {
  std::string input, weight, bias;  ///< Names of tensors; `bias` is empty without one.
  int64_t in_dim = 1, out_dim = 0;  ///< Of the weight.
};

/// linear(), and addmm(), mm() and matmul() with a second operand of two dimensions.
std::optional<LinearCall> find_linear_call(const Graph& graph, const Node& node);

/// Whether a node looks up rows of this table, and its gradient is that of embedding() without
/// further options.
bool is_look_up(const Node& node, const std::string& table);

/// How each process computes its part of a node some of whose operands are divided.
struct ShardedNode {
  Node node;           ///< With the sizes of parts.
  Shards scattered{};  ///< Whole operands of which it reads this process's part.
  Names copied{};      ///< Whole operands that it reads for this process's part of the result.
  Shards results{};    ///< Empty: they are whole.
  /// Whether the result is to be summed over the processes; then `bias`, if any, is added.
  bool is_partial_sum = false;
  std::string bias{};
};

/// Divides a node among so many processes by the rules of its operator, as DTensor's sharding
/// propagation does. Sizes of `graph` are those of whole tensors. Returns nothing, and sets
/// `problem` ("is divided along the dimension that it reduces"), if the operator needs whole
/// operands.
std::optional<ShardedNode> shard_node(const Graph& graph, const Node& node, const Shards& shards,
                                      int64_t processes, std::string& problem);

}  // namespace gallop::model::exported
