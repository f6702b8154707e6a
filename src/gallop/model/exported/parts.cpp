#include "gallop/model/exported/parts.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/node_values.h"
#include "gallop/model/exported/random_operators.h"

namespace gallop::model::exported {

namespace {

// The innermost module in a list that a node belongs to, or else the outermost one within the
// model; empty for none.
std::string_view module_of(const Node& node) {
  if (const std::string_view item = list_item_of(node); !item.empty()) return item;
  return node.modules.size() > 1 ? node.modules[1].fqn : std::string_view();
}

// Whether calling the node again gives the same results and has no other effect.
bool is_repeatable(const Node& node) {
  if (node.kind == Node::Kind::kRegion) return !writes_arguments(node) && !draws(node);
  if (node.kind == Node::Kind::kScalarFunction || node.kind == Node::Kind::kTransition) return true;
  const auto op = find_operator(node);
  return op && !op->schema().is_mutable() && !draws(node) && !updates_statistics(node);
}

// Whether a size depends on the values of tensors: torch.export names its symbol u0, u1, ...
bool depends_on_data(const Size& size) {
  const std::string& text = size.expression;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const bool begins_word = i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0;
    if (begins_word && text[i] == 'u' && std::isdigit(static_cast<unsigned char>(text[i + 1]))) {
      return true;
    }
  }
  return false;
}

// Whether a part can pass the tensor on to another process.
bool can_be_sent(const Graph& graph, const std::string& tensor) {
  const auto meta = graph.tensors.find(tensor);
  return meta != graph.tensors.end() && c10::isFloatingType(meta->second.dtype) &&
         std::none_of(meta->second.sizes.begin(), meta->second.sizes.end(), depends_on_data);
}

/// The nodes that the items of lists have.
class ListItems {
 public:
  explicit ListItems(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const ModuleFrame& frame : graph.nodes[i].modules) {
        if (!is_in_list(frame.fqn)) continue;
        Span& span = spans_.try_emplace(frame.fqn, Span{.begin = i}).first->second;
        span.end = i + 1;
      }
    }
  }

  /// How many tensors may cross the border before a node, if `crossing` do before each node and at
  /// the end.
  size_t most_at(size_t node, const std::vector<size_t>& crossing) const {
    const auto& before = graph_.nodes[node - 1].modules;
    const auto& behind = graph_.nodes[node].modules;
    for (auto frame = behind.rbegin(); frame != behind.rend(); ++frame) {
      const bool has_both = is_in_list(frame->fqn) &&
                            std::any_of(before.begin(), before.end(),
                                        [&](const auto& other) { return other.fqn == frame->fqn; });
      if (!has_both) continue;
      const Span& span = spans_.at(frame->fqn);
      return std::max(crossing[span.begin], crossing[span.end]);
    }
    return std::numeric_limits<size_t>::max();
  }

 private:
  struct Span {
    size_t begin = 0, end = 0;
  };

  const Graph& graph_;
  std::map<std::string, Span> spans_;
};

}  // namespace

/// Which tensors share memory, as far as the schemas of operators say, and which of these groups
/// some node writes from where on.
class GraphParts::Memory {
 public:
  explicit Memory(const Graph& graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) add(graph.nodes[i], i);
  }

  /// Whether node `from` or a later one writes memory of the tensor.
  bool is_written_from(const std::string& tensor, size_t from) {
    const auto found = last_writers_.find(group_of(tensor));
    return found != last_writers_.end() && found->second >= from;
  }

 private:
  std::string group_of(const std::string& tensor) {
    const auto found = groups_.find(tensor);
    if (found == groups_.end() || found->second == tensor) return tensor;
    const std::string group = group_of(std::string(found->second));
    groups_[tensor] = group;
    return group;
  }

  void note_write(const std::string& tensor, size_t node) {
    size_t& last = last_writers_[group_of(tensor)];
    last = std::max(last, node);
  }

  void unite(const std::string& tensor, const std::string& result) {
    const std::string into = group_of(tensor), from = group_of(result);
    if (into == from) return;
    groups_[from] = into;
    if (const auto found = last_writers_.find(from); found != last_writers_.end()) {
      note_write(into, found->second);
    }
  }

  void add(const Node& node, size_t index) {
    // The results of a region may be views of its arguments.
    if (node.kind == Node::Kind::kRegion) {
      const bool writes = writes_arguments(node);
      visit_reads(node, [&](const std::string& argument, bool) {
        if (writes) note_write(argument, index);
        visit_results(node, [&](const std::string& result, bool) { unite(argument, result); });
      });
      return;
    }
    const auto op = find_operator(node);
    if (!op) return;
    visit_aliased(node, *op, [&](const Argument& given, bool writes) {
      visit_values(given, [&](const std::string& tensor, bool) {
        if (writes) note_write(tensor, index);
        visit_results(node, [&](const std::string& result, bool) { unite(tensor, result); });
      });
    });
  }

  std::unordered_map<std::string, std::string> groups_;
  std::unordered_map<std::string, size_t> last_writers_;  // By group.
};

GraphParts::GraphParts(const Graph& graph, const Names& given,
                       const std::vector<std::string>& outputs)
    : graph_(graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    visit_results(graph.nodes[i], [&](const std::string& name, bool) { makers_.emplace(name, i); });
  }
  Memory memory(graph);
  find_given(given, memory);
  cut(outputs, memory);
  find_states(given);
}

void GraphParts::find_given(const Names& inputs, Memory& memory) {
  is_given_.resize(graph_.nodes.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    bool is_given = is_repeatable(node);
    visit_reads(node, [&](const std::string& name, bool) {
      const auto maker = makers_.find(name);
      is_given &= maker != makers_.end() ? is_given_[maker->second] : inputs.contains(name);
    });
    visit_results(
        node, [&](const std::string& name, bool) { is_given &= !memory.is_written_from(name, 0); });
    is_given_[i] = is_given;
  }
}

void GraphParts::cut(const std::vector<std::string>& outputs, Memory& memory) {
  begins_ = {0};
  inputs_ = {{}};
  // What is made by nodes and not given, by where it is read last.
  std::unordered_map<std::string, size_t> last_reads;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    visit_reads(graph_.nodes[i], [&](const std::string& name, bool) { last_reads[name] = i; });
  }
  for (const std::string& output : outputs) last_reads[output] = graph_.nodes.size();
  std::set<std::string> live;
  std::multimap<size_t, std::string> ends;               // By the node that reads it last.
  std::vector<size_t> crossing;                          // Before each node, how many are live.
  std::map<size_t, std::vector<std::string>> at_border;  // Those, by the node behind the border.
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    crossing.push_back(live.size());
    if (i > 0 && module_of(graph_.nodes[i]) != module_of(graph_.nodes[i - 1])) {
      at_border.try_emplace(i, live.begin(), live.end());
    }
    if (!is_given_[i]) {
      visit_results(graph_.nodes[i], [&](const std::string& name, bool) {
        const auto last = last_reads.find(name);
        if (last == last_reads.end()) return;
        live.insert(name);
        ends.emplace(last->second, name);
      });
    }
    const auto [begin, end] = ends.equal_range(i);
    for (auto ended = begin; ended != end; ++ended) live.erase(ended->second);
  }
  crossing.push_back(live.size());
  const ListItems items(graph_);
  for (auto& [node, tensors] : at_border) {
    const bool can_be_cut =
        !tensors.empty() && tensors.size() <= items.most_at(node, crossing) &&
        std::all_of(tensors.begin(), tensors.end(), [&, first = node](const std::string& tensor) {
          return can_be_sent(graph_, tensor) && !memory.is_written_from(tensor, first);
        });
    if (!can_be_cut || tensors == inputs_.back()) continue;
    begins_.push_back(node);
    inputs_.push_back(std::move(tensors));
  }
}

void GraphParts::find_states(const Names& given) {
  std::unordered_set<std::string> inputs;
  for (const Argument& input : graph_.inputs) {
    visit_values(input, [&](const std::string& name, bool) {
      if (!given.contains(name)) inputs.insert(name);
    });
  }
  for (size_t part = 0; part < size(); ++part) {
    auto& states = states_.emplace_back();
    for (size_t i = begins_[part]; i < end_of(part); ++i) {
      visit_reads(graph_.nodes[i], [&](const std::string& name, bool) {
        const bool is_new = std::find(states.begin(), states.end(), name) == states.end();
        if (is_new && inputs.contains(name)) states.push_back(name);
      });
    }
  }
}

size_t GraphParts::end_of(size_t part) const {
  return part + 1 < size() ? begins_[part + 1] : graph_.nodes.size();
}

std::vector<bool> GraphParts::nodes_of(size_t begin, size_t end) const {
  std::vector<bool> runs(graph_.nodes.size());
  std::vector<size_t> open;
  for (size_t i = begins_[begin]; i < end_of(end - 1); ++i) {
    runs[i] = true;
    open.push_back(i);
  }
  while (!open.empty()) {
    const Node& node = graph_.nodes[open.back()];
    open.pop_back();
    visit_reads(node, [&](const std::string& name, bool) {
      const auto maker = makers_.find(name);
      if (maker == makers_.end() || !is_given_[maker->second] || runs[maker->second]) return;
      runs[maker->second] = true;
      open.push_back(maker->second);
    });
  }
  return runs;
}

void GraphParts::merge(size_t begin, size_t end) {
  const auto erase = [&](auto& list) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
               list.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::vector<std::string> states = std::move(states_[begin]);
  for (size_t part = begin + 1; part < end; ++part) {
    for (std::string& name : states_[part]) {
      if (std::find(states.begin(), states.end(), name) == states.end()) {
        states.push_back(std::move(name));
      }
    }
  }
  states_[begin] = std::move(states);
  erase(begins_);
  erase(inputs_);
  erase(states_);
}

}  // namespace gallop::model::exported
