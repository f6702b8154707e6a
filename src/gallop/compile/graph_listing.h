#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/compile/graph_names.h"
#include "gallop/compile/graph_times.h"

// A graph in words and numbers, for people: what text, SVG and JSON of a graph are made from.
namespace gallop::compile {

/// What a node is for.
enum class NodeKind {
  kProduct,    ///< Matrix products, convolutions and attention of LibTorch.
  kKernel,     ///< Kernels of ours.
  kLoop,       ///< Loops generated for this graph.
  kPointwise,  ///< LibTorch's operators that go number by number.
  kCopy,       ///< Copies, conversions of formats, fills, memory.
  kOther,      ///< Reductions, tables, random numbers.
};
inline constexpr size_t kNodeKinds = 6;

/// "products", "kernels", ...
const char* name_of(NodeKind kind);

/// The text, or its beginning and "..." where it has more characters.
std::string cut(std::string text, size_t characters);

struct ListedTensor {
  std::string name;    ///< "%12"
  std::string format;  ///< "bf16 128x16x32x32 nhwc"
  bool is_new = true;  ///< Else the node overwrites it.
};

struct ListedArgument {
  std::string name;                 ///< As the operator calls it; empty where the place tells.
  std::vector<std::string> values;  ///< One, unless it is a list of tensors.
  bool is_list = false;
};

struct ListedNode {
  int64_t number = 0;
  double seconds = 0;
  NodeKind kind = NodeKind::kOther;
  std::string op;  ///< "aten::mm"
  std::vector<ListedTensor> results;
  std::vector<std::string> parts;         ///< Of a generated loop: the operators in it.
  std::vector<ListedArgument> arguments;  ///< Those that are the operator's defaults are left out.
  std::vector<int64_t> makers;            ///< Nodes whose results it reads.

  /// "%12 fp32 128x10", "%12.0 fp32 128x10, .1 fp32 10", "writes fc.weight, fc.bias"; names after
  /// the first `most` are counted only.
  std::string text_of_results(size_t most) const;
  /// With the first names only that fit in so many characters, or with "..." at its end.
  std::string text_of_results_within(size_t characters) const;
  /// "aten::addmm(fc.bias, %3, fc.weight^T, beta=2)", "gallop::loop{mul, relu}([%3, %4])"; so are
  /// the tensors of a list.
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
  int64_t runs = 0;                       ///< That the times are medians of.
  int64_t planned_bytes = 0;              ///< Of temporaries; see MemoryPlan.
  int64_t most_in_use_bytes = 0;

  double share_of(double part) const { return seconds > 0 ? part / seconds : 0; }
  /// By kind.
  std::vector<ListedOperator> kinds() const;
};

/// A graph as it is after a pass.
struct GraphStage {
  std::string name;  ///< Of the pass; see all_stages().
  GraphListing listing;
};

/// By how many calls an operator has become more or fewer; those that stayed are not in it.
std::map<std::string, int64_t> changes_of(const GraphListing& before, const GraphListing& after);

GraphListing list_graph(const Graph& graph, const GraphNames& names, const GraphTimes& times);

}  // namespace gallop::compile
