#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// Nodes of a graph that can be computed again in the backward pass (activation checkpointing):
/// those of one call of a module.
struct Block {
  std::string fqn;                   ///< "encoder.layers.3"
  size_t begin = 0, end = 0;         ///< Nodes of the graph.
  std::vector<std::string> inputs;   ///< Activations that it reads, of earlier nodes.
  std::vector<std::string> outputs;  ///< Tensors that later nodes or the caller read.
  /// Other values from outside: inputs of the graph, and scalars.
  std::vector<std::string> captured;
};

/// The blocks of a graph in their order: the outermost modules of the user's own classes in lists,
/// such as "layers.0". `user_inputs` are the graph's inputs that are activations. Modules are left
/// out that do not only map tensors to tensors: that write tensors of others in place, whose inputs
/// are written later, or whose scalars are read elsewhere.
std::vector<Block> find_blocks(const Graph& graph, const std::vector<std::string>& user_inputs);

}  // namespace gallop::model::exported
