#include "gallop/model/exported/blocks.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/node_values.h"

namespace gallop::model::exported {

namespace {

// The module that a node belongs to; empty for none. Containers and layers of torch are no blocks.
std::string_view block_of(const Node& node) {
  for (const ModuleFrame& frame : node.modules) {
    if (is_in_list(frame.fqn) && !frame.type.starts_with("torch.nn.")) return frame.fqn;
  }
  return {};
}

/// Where values are made and last read.
class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      visit_results(graph.nodes[i], [&](const std::string& name, bool) { made_[name] = i; });
      visit_reads(graph.nodes[i], [&](const std::string& name, bool) { last_read_[name] = i; });
    }
    for (const Argument& output : graph.outputs) {
      visit_values(output,
                   [&](const std::string& name, bool) { last_read_[name] = graph.nodes.size(); });
    }
  }

  bool is_made_by_nodes(const std::string& name) const { return made_.contains(name); }
  bool is_made_within(const std::string& name, const Block& block) const {
    const auto found = made_.find(name);
    return found != made_.end() && found->second >= block.begin && found->second < block.end;
  }
  bool is_read_from(const std::string& name, size_t node) const {
    const auto found = last_read_.find(name);
    return found != last_read_.end() && found->second >= node;
  }

 private:
  std::unordered_map<std::string, size_t> made_, last_read_;
};

void add(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// Finds what crosses the block's borders. Returns whether it maps tensors to tensors.
bool find_borders(const Graph& graph, const Lifetimes& lifetimes,
                  const std::vector<std::string>& user_inputs, Block& block) {
  bool is_map = true;
  for (size_t i = block.begin; i < block.end; ++i) {
    is_map &= graph.nodes[i].kind != Node::Kind::kRegion;
    visit_reads(graph.nodes[i], [&](const std::string& name, bool is_tensor) {
      if (lifetimes.is_made_within(name, block)) return;
      const bool is_input = is_tensor && (lifetimes.is_made_by_nodes(name) ||
                                          std::find(user_inputs.begin(), user_inputs.end(), name) !=
                                              user_inputs.end());
      add(is_input ? block.inputs : block.captured, name);
    });
    visit_results(graph.nodes[i], [&](const std::string& name, bool is_tensor) {
      if (!lifetimes.is_read_from(name, block.end)) return;
      is_map &= is_tensor;
      add(block.outputs, name);
    });
  }
  return is_map && !block.inputs.empty() && !block.outputs.empty();
}

// Whether a node from the block on writes one of its inputs, also by a view.
bool writes_inputs(const Graph& graph, const Block& block) {
  Aliases aliases(Names(block.inputs.begin(), block.inputs.end()));
  for (size_t i = block.begin; i < graph.nodes.size(); ++i) {
    if (aliases.add(graph.nodes[i])) return true;
  }
  return false;
}

// Whether the results of an operator may be views of its arguments.
bool makes_views(const Node& node) {
  const auto op = find_operator(node);
  bool makes = !op;
  if (op) visit_aliased(node, *op, [&](const Argument&, bool writes) { makes |= !writes; });
  return makes;
}

// Whether an output of the block is a view, and a node after the block writes it, which autograd
// does not allow for results of a function.
bool has_written_views(const Graph& graph, const Block& block) {
  Names views;
  for (size_t i = block.begin; i < block.end; ++i) {
    if (!makes_views(graph.nodes[i])) continue;
    visit_results(graph.nodes[i], [&](const std::string& name, bool) {
      const auto& outputs = block.outputs;
      if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) views.insert(name);
    });
  }
  Aliases aliases(views);
  for (size_t i = block.end; i < graph.nodes.size() && !views.empty(); ++i) {
    if (aliases.add(graph.nodes[i])) return true;
  }
  return false;
}

// Whether the block reads what the caller owns, such as buffers, and it is written from there on,
// so that other values would be read where the block is computed again. Writes whose results are
// not read are then left out, and batch norm does not read its running statistics.
bool reads_written_state(const Graph& graph, const Lifetimes& lifetimes, const Block& block) {
  Aliases state(Names(block.captured.begin(), block.captured.end()));
  std::vector<bool> only_writes;  // For the nodes of the block.
  for (size_t i = block.begin; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool writes = state.add(node);
    if (i >= block.end) continue;
    bool is_read = false;
    visit_results(node, [&](const std::string& name, bool) {
      is_read |= lifetimes.is_read_from(name, i + 1);
    });
    only_writes.push_back((writes && !is_read) || updates_statistics(node));
  }
  for (size_t i = block.begin; i < block.end; ++i) {
    if (only_writes[i - block.begin]) continue;
    bool is_read = false;
    visit_reads(graph.nodes[i],
                [&](const std::string& name, bool) { is_read |= state.is_written(name); });
    if (is_read) return true;
  }
  return false;
}

}  // namespace

std::vector<Block> find_blocks(const Graph& graph, const std::vector<std::string>& user_inputs) {
  const Lifetimes lifetimes(graph);
  std::vector<Block> blocks;
  for (size_t begin = 0; begin < graph.nodes.size();) {
    const std::string_view fqn = block_of(graph.nodes[begin]);
    size_t end = begin + 1;
    while (end < graph.nodes.size() && block_of(graph.nodes[end]) == fqn) end += 1;
    Block block{.fqn = std::string(fqn),
                .begin = begin,
                .end = end,
                .inputs = {},
                .outputs = {},
                .captured = {}};
    if (!fqn.empty() && find_borders(graph, lifetimes, user_inputs, block) &&
        !writes_inputs(graph, block) && !has_written_views(graph, block) &&
        !reads_written_state(graph, lifetimes, block)) {
      blocks.push_back(std::move(block));
    }
    begin = end;
  }
  return blocks;
}

}  // namespace gallop::model::exported
