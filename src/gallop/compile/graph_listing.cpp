#include "gallop/compile/graph_listing.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "gallop/compile/arena.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/difference.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/recorder.h"
#include "gallop/compile/value_text.h"

namespace gallop::compile {

namespace {

constexpr std::array<std::string_view, 10> kGemmNames = {
    "aten::mm",  "aten::addmm", "aten::bmm",  "aten::baddbmm", "aten::addbmm",
    "aten::dot", "aten::mv",    "aten::vdot", "aten::addmv",   "aten::addr"};
constexpr std::array<std::string_view, 4> kPartsOfGemmNames = {"conv", "linear", "attention",
                                                               "matmul"};
constexpr std::array<std::string_view, 12> kCopies = {
    "aten::copy_", "aten::_to_copy",      "aten::clone", "aten::cat",
    "aten::stack", "aten::fill",          "aten::fill_", "aten::zero_",
    "aten::zero",  "aten::scalar_tensor", "aten::set_",  "aten::contiguous"};
constexpr std::array<std::string_view, 6> kStartsOfCopyNames = {
    "aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_", "aten::constant_pad"};

template <typename List, typename Matches>
bool any(const List& list, const Matches& matches) {
  return std::any_of(list.begin(), list.end(), matches);
}

NodeKind kind_of(const Node& node) {
  const std::string& name = node.op.schema().name();
  if (is_loop(node)) return NodeKind::kLoop;
  if (name.starts_with("gallop::")) return NodeKind::kKernel;
  const auto is = [&](std::string_view other) { return name == other; };
  const auto starts = [&](std::string_view start) { return name.starts_with(start); };
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (any(kGemmNames, is) || any(kPartsOfGemmNames, holds)) return NodeKind::kGemm;
  if (any(kCopies, is) || any(kStartsOfCopyNames, starts)) return NodeKind::kCopy;
  if (node.op.hasTag(at::Tag::pointwise) || name.starts_with("aten::_foreach_")) {
    return NodeKind::kPointwise;
  }
  return NodeKind::kOther;
}

bool is_default(const Operand& operand, const c10::Argument& argument) {
  const auto& usual = argument.default_value();
  if (!usual) return false;
  if (operand.kind == Operand::Kind::kConstant) return is_same(operand.constant, *usual);
  return operand.views == std::vector<ViewId>{kNone} && usual->isNone();
}

std::vector<ListedArgument> arguments_of(const Node& node, const GraphNamer& namer) {
  const auto& schema = node.op.schema().arguments();
  std::vector<ListedArgument> listed;
  bool all_so_far = true;  // Else arguments need names besides their positions.
  // The last argument of a loop is its address, which is omitted.
  const size_t count = node.arguments.size() - (is_loop(node) ? 1 : 0);
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = node.arguments[i];
    if (is_default(operand, schema[i])) {
      all_so_far = false;
      continue;
    }
    ListedArgument argument;
    if (operand.kind == Operand::Kind::kConstant) {
      argument.name = schema[i].name();
      argument.values = {text_of_constant(operand.constant, schema[i])};
    } else {
      const bool is_plain = all_so_far && !schema[i].kwarg_only();
      argument.name = is_plain ? "" : schema[i].name();
      argument.is_list = operand.kind != Operand::Kind::kTensor;
      for (const ViewId view : operand.views) argument.values.push_back(namer.name_of_view(view));
    }
    listed.push_back(std::move(argument));
  }
  return listed;
}

std::vector<ListedTensor> results_of(const Node& node, const GraphNamer& namer) {
  std::vector<ListedTensor> made, overwritten;
  std::set<ViewId> is_made;
  const auto listed = [&](ViewId view, bool is_new) {
    return ListedTensor{
        .name = namer.name_of_view(view), .format = namer.format_of_view(view), .is_new = is_new};
  };
  for (const Operand& operand : node.results) {
    for (const ViewId view : operand.views) {
      if (view == kNone) continue;
      made.push_back(listed(view, true));
      is_made.insert(view);
    }
  }
  for (const Access& access : accesses_of(node)) {
    if (access.writes && !is_made.contains(access.view)) {
      overwritten.push_back(listed(access.view, false));
    }
  }
  made.insert(made.end(), overwritten.begin(), overwritten.end());
  return made;
}

// The last writers of the buffers that a node reads.
class Makers {
 public:
  explicit Makers(const Graph& graph) : graph_(graph), last_(graph.buffers.size(), kNone) {}

  std::vector<int64_t> next(const Node& node, int64_t number) {
    const auto accesses = accesses_of(node);
    std::vector<int64_t> makers;
    for (const Access& access : accesses) {
      const int64_t maker = last_[graph_.views[access.view].buffer];
      if (access.reads && maker != kNone) makers.push_back(maker);
    }
    for (const Access& access : accesses) {
      if (access.writes) last_[graph_.views[access.view].buffer] = number;
    }
    std::sort(makers.begin(), makers.end());
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    return makers;
  }

 private:
  const Graph& graph_;
  std::vector<int64_t> last_;
};

void sort_by_time(std::vector<ListedOperator>& operators) {
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

std::vector<ListedOperator> operators_of(const std::vector<ListedNode>& nodes) {
  std::map<std::string, ListedOperator> by_name;
  for (const ListedNode& node : nodes) {
    ListedOperator& all = by_name[node.op];
    all.op = node.op;
    all.kind = node.kind;
    all.count += 1;
    all.seconds += node.seconds;
  }
  std::vector<ListedOperator> operators;
  for (auto& [name, all] : by_name) operators.push_back(std::move(all));
  sort_by_time(operators);
  return operators;
}

std::vector<ListedLayer> layers_of(const std::vector<ListedNode>& nodes) {
  std::vector<ListedLayer> layers;
  std::map<std::string, size_t> index_of;
  for (const ListedNode& node : nodes) {
    for (const NodePlace& place : node.places) {
      const auto [found, is_new] = index_of.try_emplace(place.layer, layers.size());
      if (is_new) layers.push_back({.name = place.layer});
      ListedLayer& layer = layers[found->second];
      const bool forward = place.phase == "forward" || place.phase == "loss";
      const bool backward = place.phase == "backward" || place.phase == "recomputation";
      (forward    ? layer.forward
       : backward ? layer.backward
                  : layer.other) += place.share * node.seconds;
      layer.flops += place.share * node.work.flops;
      layer.bytes += place.share * node.work.bytes;
    }
  }
  return layers;
}

// "{mul, relu}": the operators without namespaces and overloads.
std::string parts_text(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    const auto begin = part.find("::");
    const std::string name = begin == std::string::npos ? part : part.substr(begin + 2);
    text += (text.empty() ? "" : ", ") + name.substr(0, name.find('.'));
  }
  return parts.empty() ? text : "{" + text + "}";
}

}  // namespace

const char* name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGemm: return "GEMMs";
    case NodeKind::kKernel: return "kernels";
    case NodeKind::kLoop: return "loops";
    case NodeKind::kPointwise: return "pointwise";
    case NodeKind::kCopy: return "copies";
    case NodeKind::kOther: return "other";
  }
  return "other";
}

std::string cut(std::string text, size_t characters) {
  if (text.size() <= characters) return text;
  text.resize(characters > 3 ? characters - 3 : 0);
  return text + "...";
}

std::string ListedNode::text_of_results(size_t most) const {
  std::string text;
  size_t made = 0, written = 0;
  for (const ListedTensor& result : results) (result.is_new ? made : written) += 1;
  for (size_t i = 0; i < std::min(made, most); ++i) {
    const std::string& name = results[i].name;
    const auto dot = name.rfind('.');
    text += i > 0 && dot != std::string::npos ? name.substr(dot) : name;
    text += " " + results[i].format + (i + 1 < std::min(made, most) ? ", " : "");
  }
  if (made > most) text += fmt::format(", +{}", made - most);
  if (written == 0) return text;
  text += made > 0 ? ", writes " : "writes ";
  // One name of several would not be informative.
  if (most == 1 && written > 1) return text + std::to_string(written);
  for (size_t i = 0; i < std::min(written, most); ++i) {
    text += (i > 0 ? ", " : "") + results[made + i].name;
  }
  return written > most ? fmt::format("{}, +{}", text, written - most) : text;
}

std::string ListedNode::text_of_formats() const {
  std::vector<const ListedTensor*> made, written;
  for (const ListedTensor& result : results) (result.is_new ? made : written).push_back(&result);
  if (written.size() > 1) return fmt::format("writes {} tensors", written.size());
  if (written.size() == 1) return "writes " + written.front()->name;
  return made.empty() ? std::string() : made.front()->format;
}

std::string ListedNode::text_of_results_within(size_t characters) const {
  const std::string two = text_of_results(2);
  return two.size() <= characters ? two : cut(text_of_results(1), characters);
}

std::string ListedNode::text_of_operator() const { return op + parts_text(parts); }

std::string ListedNode::text_of_call(size_t most) const {
  std::string text;
  for (const ListedArgument& argument : arguments) {
    if (!text.empty()) text += ", ";
    if (!argument.name.empty()) text += argument.name + "=";
    if (argument.is_list) text += "[";
    for (size_t i = 0; i < argument.values.size(); ++i) {
      if (i == most) {
        text += fmt::format(", +{}", argument.values.size() - most);
        break;
      }
      text += (i == 0 ? "" : ", ") + argument.values[i];
    }
    if (argument.is_list) text += "]";
  }
  return fmt::format("{}({})", text_of_operator(), text);
}

std::vector<ListedOperator> GraphListing::kinds() const {
  std::vector<ListedOperator> all(kNodeKinds);
  for (size_t i = 0; i < kNodeKinds; ++i) {
    all[i].kind = static_cast<NodeKind>(i);
    all[i].op = name_of(all[i].kind);
  }
  for (const ListedNode& node : nodes) {
    all[static_cast<size_t>(node.kind)].count += 1;
    all[static_cast<size_t>(node.kind)].seconds += node.seconds;
  }
  std::erase_if(all, [](const ListedOperator& kind) { return kind.count == 0; });
  return all;
}

std::map<std::string, int64_t> changes_of(const GraphListing& before, const GraphListing& after) {
  std::map<std::string, int64_t> changes;
  for (const ListedOperator& all : before.operators) changes[all.op] -= all.count;
  for (const ListedOperator& all : after.operators) changes[all.op] += all.count;
  std::erase_if(changes, [](const auto& change) { return change.second == 0; });
  return changes;
}

std::string ListedNode::text_of_layers() const {
  std::vector<std::string> names;
  for (const NodePlace& place : places) {
    const bool known = std::find(names.begin(), names.end(), place.layer) != names.end();
    if (!place.layer.empty() && !known) names.push_back(place.layer);
  }
  if (names.size() < 2) return names.empty() ? std::string() : names.front();
  return fmt::format("{} +{}", names.front(), names.size() - 1);
}

GraphListing list_graph(const Graph& graph, const GraphNames& names, const GraphTimes& times) {
  const GraphNamer namer(graph, names);
  const CallLayers layers(graph, names);
  Makers makers(graph);
  GraphListing listing{.nodes = {}, .operators = {}, .layers = {}, .runs = times.runs};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto number = static_cast<int64_t>(i);
    const NodeWork work = work_of(graph, node);
    listing.nodes.push_back(
        {.number = number,
         .seconds = times.seconds[i],
         .kind = kind_of(node),
         .op = name_of(node.op),
         .results = results_of(node, namer),
         .parts = is_loop(node) ? node.loop->parts : std::vector<std::string>(),
         .arguments = arguments_of(node, namer),
         .makers = makers.next(node, number),
         .places = layers.places_of(node),
         .work = work,
         .work_format = name_of_format(work.format),
         .communicates = starts_collective(node.op) || waits_for_collective(node.op)});
    listing.seconds += times.seconds[i];
  }
  listing.operators = operators_of(listing.nodes);
  listing.layers = layers_of(listing.nodes);
  const MemoryPlan plan = plan_memory(graph, Arena::kMargin);
  listing.planned_bytes = plan.bytes;
  listing.most_in_use_bytes = plan.most_in_use;
  listing.memory = memory_timeline(graph, layers);
  return listing;
}

std::map<int64_t, GraphListing> list_graphs(const CompiledFunction& function,
                                            const GraphNames& names) {
  std::map<int64_t, GraphListing> listings;
  for (const Graph* graph : function.graphs()) {
    const GraphTimes none{.seconds = std::vector<double>(graph->nodes.size())};
    listings.emplace(graph->number, list_graph(*graph, names, none));
  }
  return listings;
}

}  // namespace gallop::compile
