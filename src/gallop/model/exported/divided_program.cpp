#include "gallop/model/exported/divided_program.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/node_values.h"
#include "gallop/model/exported/random_operators.h"
#include "gallop/model/exported/sharding.h"
#include "gallop/model/exported/transitions.h"

namespace gallop::model::exported {

namespace {

// Names other tensors where an argument names these.
void rename(Argument& argument, const std::map<std::string, std::string>& names) {
  const auto one = [&](TensorName& tensor) {
    const auto found = names.find(tensor.name);
    if (found != names.end()) tensor.name = found->second;
  };
  if (auto* const tensor = std::get_if<TensorName>(&argument)) {
    one(*tensor);
  } else if (auto* const tensors = std::get_if<std::vector<TensorName>>(&argument)) {
    for (TensorName& each : *tensors) one(each);
  } else if (auto* const optionals = std::get_if<OptionalTensors>(&argument)) {
    for (auto& each : *optionals) {
      if (each) one(*each);
    }
  }
}

/// Makes the graph for parts.
class Divider {
 public:
  Divider(const Program& program, const TensorParallelPlan& plan,
          const TensorParallelOptions& options)
      : program_(program), options_(options) {
    for (const auto& [value, name] : parameters_of(program, options)) {
      if (const auto found = plan.find(name); found != plan.end()) shards_[value] = found->second;
    }
  }

  DividedProgram run() {
    DividedProgram divided{.program = program_};
    graph_ = &divided.program.graph;
    graph_->nodes.clear();
    for (const Node& node : program_.graph.nodes) add(node);
    for (const Argument& output : program_.graph.outputs) {
      visit_values(output, [&](const std::string& name, bool) {
        const auto found = shards_.find(name);
        if (found == shards_.end()) return;
        const auto& sizes = program_.graph.tensors.at(name).sizes;
        const int64_t classes = sizes.back().hint.value_or(0);
        if (name != options_.logits ||
            found->second != Shard{static_cast<int64_t>(sizes.size()) - 1, classes}) {
          throw UsageError(
              fmt::format("parallel.name=tensor: {}: each process has only a part of the result "
                          "'{}'; set parallel.tp_plan",
                          options_.file, printable(name)));
        }
        divided.classes_divided = classes;
      });
    }
    return divided;
  }

 private:
  void add(const Node& node) {
    bool is_divided = false;
    visit_reads(node, [&](const std::string& name, bool) {
      is_divided = is_divided || shards_.contains(name);
    });
    if (is_divided) {
      add_divided(node);
    } else {
      graph_->nodes.push_back(node);
    }
    // Copies do not see later writes.
    const auto op = find_operator(node);
    if (node.kind == Node::Kind::kRegion || (op && op->schema().is_mutable())) {
      in_region_.clear();
    }
  }

  void add_divided(const Node& node) {
    std::string problem;
    auto sharded = shard_node(program_.graph, node, shards_, options_.processes, problem);
    if (!sharded) {
      throw UsageError(
          fmt::format("parallel.name=tensor: {}: {} {}", options_.file, describe(node), problem));
    }
    std::map<std::string, std::string> names;
    // What is read by the nodes of one item is brought into its region once.
    const std::string_view item = list_item_of(node);
    for (const auto& [name, shard] :
         std::map(sharded->scattered.begin(), sharded->scattered.end())) {
      const std::string key = fmt::format("{} {} {} {}", name, shard.dim, shard.group, item);
      names[name] = brought(key, name, "part", [&](const std::string& result) {
        return scatter_to_region(node, name, shard, result);
      });
    }
    for (const std::string& name : std::set(sharded->copied.begin(), sharded->copied.end())) {
      // Others have no gradient.
      if (!c10::isFloatingType(program_.graph.tensors.at(name).dtype)) continue;
      names[name] =
          brought(fmt::format("{} {}", name, item), name, "copy",
                  [&](const std::string& result) { return copy_to_region(node, name, result); });
    }
    Node& part = sharded->node;
    for (NamedArgument& input : part.inputs) rename(input.value, names);
    if (!sharded->results.empty() && find_random_operator(node, c10::kCPU) != nullptr) {
      part.shard = sharded->results.begin()->second;
    }
    if (sharded->is_partial_sum) {
      const std::string result = tensor_name_of(node.outputs.front());
      const std::string partial = new_name(result, "partial");
      part.outputs = {TensorName{partial}};
      graph_->nodes.push_back(std::move(part));
      graph_->nodes.push_back(reduce_from_region(node, partial, sharded->bias, result));
    } else {
      graph_->nodes.push_back(std::move(part));
    }
    shards_.insert(sharded->results.begin(), sharded->results.end());
  }

  // The name of a tensor that a transition makes of another one, which it may have done already.
  template <typename Make>
  std::string brought(const std::string& key, const std::string& name, const char* what,
                      const Make& make) {
    const auto [found, is_new] = in_region_.try_emplace(key);
    if (is_new) {
      found->second = new_name(name, what);
      graph_->nodes.push_back(make(found->second));
    }
    return found->second;
  }

  // Names of the program have no dots.
  std::string new_name(const std::string& name, const char* what) {
    const std::string made = fmt::format("{}.{}{}", name, what, ++made_);
    const auto meta = program_.graph.tensors.find(name);
    if (meta != program_.graph.tensors.end()) graph_->tensors[made] = meta->second;
    return made;
  }

  const Program& program_;
  TensorParallelOptions options_;
  Graph* graph_ = nullptr;
  Shards shards_;
  std::map<std::string, std::string> in_region_;  // What transitions have made.
  int64_t made_ = 0;
};

}  // namespace

DividedProgram divide(const Program& program, const TensorParallelPlan& plan,
                      const TensorParallelOptions& options) {
  return Divider(program, plan, options).run();
}

}  // namespace gallop::model::exported
