#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// A graph in consecutive parts, each of which passes tensors on to the next: at borders between
/// modules, which are those in lists, such as "layers.0" and "layers.1", and the outermost ones
/// elsewhere. What a later part reads passes through those in between. A list in an item of another
/// one, such as "layers.0.mlp.0", is cut only where no more tensors cross than where the item
/// begins or ends, which excludes borders that a residual connection bridges. What follows from the
/// `given` inputs of the graph alone, such as masks and positions, is not passed on: a part that
/// reads it computes it again.
class GraphParts {
 public:
  /// `given`: the inputs that every process has at hand and that never change: those of the user,
  /// constants, and buffers that are not written. `outputs`: the results of the graph that are
  /// used, which the last part computes.
  GraphParts(const Graph& graph, const Names& given, const std::vector<std::string>& outputs);

  size_t size() const { return begins_.size(); }
  /// The tensors that a part gets from the one before; none for the first part.
  const std::vector<std::string>& inputs_of(size_t part) const { return inputs_[part]; }
  /// The other inputs of the graph that the nodes of each part read or write, in order.
  const std::vector<std::string>& states_of(size_t part) const { return states_[part]; }
  /// For each node of the graph, whether parts [begin, end) run it.
  std::vector<bool> nodes_of(size_t begin, size_t end) const;

  /// Makes one part of [begin, end), none of which may be empty.
  void merge(size_t begin, size_t end);

 private:
  class Memory;
  void find_given(const Names& inputs, Memory& memory);
  void cut(const std::vector<std::string>& outputs, Memory& memory);
  void find_states(const Names& given);
  size_t end_of(size_t part) const;

  const Graph& graph_;
  std::vector<bool> is_given_;                      // By node.
  std::unordered_map<std::string, size_t> makers_;  // The node that makes each value.
  std::vector<size_t> begins_;                      // The first node of each part.
  std::vector<std::vector<std::string>> inputs_;
  std::vector<std::vector<std::string>> states_;
};

}  // namespace gallop::model::exported
