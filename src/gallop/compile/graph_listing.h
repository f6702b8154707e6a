#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/compile/graph_names.h"
#include "gallop/compile/graph_times.h"

// A graph in human-readable form, from which its text, SVG and JSON are made.
namespace gallop::compile {

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

  /// "%12 fp32 128x10", "%12.0 fp32 128x10, .1 fp32 10", "writes fc.weight, fc.bias"; names after
  /// the first `most` are only counted.
  std::string text_of_results(size_t most) const;
  /// As text_of_results(), with as many names as fit into so many characters, or truncated with
  /// "...".
  std::string text_of_results_within(size_t characters) const;
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

struct GraphListing {
  std::vector<ListedNode> nodes;
  std::vector<ListedOperator> operators;  ///< The slowest first.
  double seconds = 0;                     ///< Sum of the nodes'.
  int64_t runs = 0;                       ///< Number of runs of which the times are medians.
  int64_t planned_bytes = 0;              ///< Of temporaries; see MemoryPlan.
  int64_t most_in_use_bytes = 0;

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

}  // namespace gallop::compile
