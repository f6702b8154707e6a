#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/model/exported/sharding.h"

// Internal to exported/sharding: the rules by which a node is computed on parts.
namespace gallop::model::exported {

/// The number of dimensions; -1 if it is unknown.
int64_t rank_of(const Graph& graph, const std::string& tensor);

/// The tensor that an argument names; empty for none.
std::string tensor_argument(const Node& node, const char* name);

/// The rules for one node, by shard_node(). Functions that return false have set the problem.
class NodeSharder {
 public:
  NodeSharder(const Graph& graph, const Node& node, const Shards& shards, int64_t processes,
              std::string& problem);

  std::optional<ShardedNode> run() {
    if (!apply() || !has_one_role_for_each()) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool fail(std::string problem);
  bool apply();
  bool has_one_role_for_each();
  bool unary(const Shard& shard);

  // What the node is given. Dimensions are counted from the first one.
  const Shard* find(const std::string& tensor) const {
    const auto found = shards_.find(tensor);
    return found == shards_.end() ? nullptr : &found->second;
  }
  int64_t rank() const { return rank_of(graph_, operands_.front()); }
  const std::vector<Size>& sizes_of(const std::string& tensor) const {
    return graph_.tensors.at(tensor).sizes;
  }
  int64_t size_of(const std::string& tensor, int64_t dim) const {
    return constant_of(sizes_of(tensor)[static_cast<size_t>(dim)]);
  }
  std::optional<int64_t> int_argument(const char* name, std::optional<int64_t> otherwise);
  std::optional<int64_t> dim_argument(const char* name, int64_t dims,
                                      std::optional<int64_t> otherwise = {});
  std::optional<int64_t> in_range(int64_t dim, int64_t dims);
  // A dimension or a list of them; none if the argument is missing, which stands for all.
  std::optional<std::vector<int64_t>> dims_argument(const char* name);
  std::vector<std::string> results() const;

  // What becomes of it.
  bool set_results(const Shard& shard) {
    for (const std::string& name : results()) result_.results[name] = shard;
    return true;
  }
  bool scatter(const std::string& name, const Shard& shard);
  bool divides(int64_t size) const { return size > 0 && size % processes_ == 0; }
  bool fail_to_divide(int64_t size);
  // Makes an argument of sizes one for parts; -1 stands for what is left or, in expand(), is kept.
  bool divide_entry(const char* name, int64_t index);
  bool divide_size(int64_t& size);
  void set_argument(const char* name, int64_t value);

  // Rules for several operands (node_sharder_operands.cpp).
  bool broadcast(int64_t first);
  bool linear();
  void drop_bias();
  bool product();
  bool einsum();
  bool gathered();
  bool looked_up();
  bool attention();
  bool joined(bool is_stack);

  // Rules for a divided operand (node_sharder_shapes.cpp).
  bool along(const Shard& shard);
  bool reduced(const Shard& shard);
  bool normalized(const Shard& shard);
  bool reshaped(const Shard& shard, const char* sizes, int64_t from);
  bool expanded(const Shard& shard);
  bool repeated(const Shard& shard);
  bool interleaved(const Shard& shard);
  bool transposed(const Shard& shard, const char* one_name, const char* other_name);
  bool permuted(const Shard& shard);
  bool unsqueezed(const Shard& shard);
  bool squeezed(const Shard& shard);
  bool selected(const Shard& shard);
  bool sliced(const Shard& shard);
  bool split(const Shard& shard);
  bool gated(const Shard& shard);

  const Graph& graph_;
  const Node& node_;
  const Shards& shards_;
  int64_t processes_;
  std::string& problem_;
  ShardedNode result_;
  std::vector<std::string> operands_;  // The tensors that it reads, in order.
};

}  // namespace gallop::model::exported
