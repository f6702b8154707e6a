#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/compile/call_layers.h"
#include "gallop/compile/graph_names.h"
#include "gallop/compile/graph_times.h"
#include "gallop/compile/memory_timeline.h"
#include "gallop/compile/node_work.h"

// A graph in human-readable form, from which its text, SVG and JSON are made.
namespace gallop::compile {

class CompiledFunction;

/// The kind of a node.
enum class NodeKind {
  kGemm,       ///< LibTorch's GEMMs, convolutions and attention.
  kKernel,     ///< Gallop's kernels.
  kLoop,       ///< Loops generated for this graph.
  kPointwise,  ///< LibTorch's pointwise operators.
  kCopy,       ///< Copies, casts, fills, memory.
  kOther,      ///< Reductions, tables, random numbers.
};
inline constexpr size_t kNodeKinds = 6;

/// "GEMMs", "kernels", ...
const char* name_of(NodeKind kind);

/// The text, truncated with "..." if it has more characters.
std::string cut(std::string text, size_t characters);

struct ListedTensor {
  std::string name;    ///< "%12"
  std::string format;  ///< "bf16 128x16x32x32 nhwc"
  bool is_new = true;  ///< Else the node overwrites it.
};

struct ListedArgument {
  std::string name;                 ///< The operator's name for it; empty if the position
                                    ///< identifies it.
  std::vector<std::string> values;  ///< One, unless it is a list of tensors.
  bool is_list = false;
};

struct ListedNode {
  int64_t number = 0;
  double seconds = 0;
  NodeKind kind = NodeKind::kOther;
  std::string op;  ///< "aten::mm"
  std::vector<ListedTensor> results;
  std::vector<std::string> parts;         ///< The operators in a generated loop.
  std::vector<ListedArgument> arguments;  ///< Without those equal to the operator's defaults.
  std::vector<int64_t> makers;            ///< Nodes whose results it reads.
  std::vector<NodePlace> places;          ///< Phases and layers, the largest share first.
  NodeWork work;
  std::string work_format;    ///< "bf16": NodeWork::format.
  bool communicates = false;  ///< It is part of a collective.

  /// "layer1.0.conv1", "layer1.0.conv1 +2" for parts of three layers; empty if unknown.
  std::string text_of_layers() const;

  /// "%12 fp32 128x10", "%12.0 fp32 128x10, .1 fp32 10", "writes fc.weight, fc.bias"; names after
  /// the first `most` are only counted.
  std::string text_of_results(size_t most) const;
  /// "bf16 128x16x32x32 nhwc", "writes fc.weight", "writes 12 tensors": without names of values.
  std::string text_of_formats() const;
  /// As text_of_results(), with as many names as fit into so many characters, or truncated with
  /// "...".
  std::string text_of_results_within(size_t characters) const;
  /// "aten::addmm", "gallop::loop{mul, relu}"
  std::string text_of_operator() const;
  /// "aten::addmm(fc.bias, %3, fc.weight^T, beta=2)", "gallop::loop{mul, relu}([%3, %4])"; after
  /// the first `most`, tensors of a list are only counted.
  std::string text_of_call(size_t most) const;
};

/// All calls of one operator.
struct ListedOperator {
  std::string op;
  NodeKind kind = NodeKind::kOther;
  int64_t count = 0;
  double seconds = 0;
};

/// The nodes of one layer; of a node that belongs to several layers, its share.
struct ListedLayer {
  std::string name;                             ///< Empty: nodes of no layer.
  double forward = 0, backward = 0, other = 0;  ///< Seconds; recomputation counts as backward.
  double flops = 0, bytes = 0;

  double seconds() const { return forward + backward + other; }
};

struct GraphListing {
  std::vector<ListedNode> nodes;
  std::vector<ListedOperator> operators;  ///< The slowest first.
  std::vector<ListedLayer> layers;        ///< In the order of their first nodes.
  double seconds = 0;                     ///< Sum of the nodes'.
  int64_t runs = 0;                       ///< Number of runs of which the times are medians.
  int64_t planned_bytes = 0;              ///< Of temporaries; see MemoryPlan.
  int64_t most_in_use_bytes = 0;
  MemoryTimeline memory;

  double share_of(double part) const { return seconds > 0 ? part / seconds : 0; }
  /// The sums for each kind of node.
  std::vector<ListedOperator> kinds() const;
};

/// A graph after a pass.
struct GraphStage {
  std::string name;  ///< Of the pass; see all_stages().
  GraphListing listing;
};

/// The change in the number of calls of each operator; unchanged ones are omitted.
std::map<std::string, int64_t> changes_of(const GraphListing& before, const GraphListing& after);

GraphListing list_graph(const Graph& graph, const GraphNames& names, const GraphTimes& times);

/// The graphs of a compiled function, by Graph::number, without times.
std::map<int64_t, GraphListing> list_graphs(const CompiledFunction& function,
                                            const GraphNames& names);

}  // namespace gallop::compile
