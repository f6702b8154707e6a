#include "gallop/app/model_facts.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace gallop::app {
namespace {

using compile::GraphListing;
using compile::ListedNode;

using Names = std::vector<std::string>;

// "%3 = op(arguments)", or a change of `result` if that is the name of a parameter.
ListedNode node(const std::string& result, const std::string& op, const Names& arguments,
                double flops = 0) {
  ListedNode made{.op = op, .work = {.flops = flops}};
  made.results.push_back({.name = result, .format = "fp32 8x8", .is_new = result[0] == '%'});
  for (const std::string& argument : arguments) made.arguments.push_back({.values = {argument}});
  return made;
}

NamedTensors parameters(const Names& names) {
  NamedTensors all;
  for (const std::string& name : names) all.push_back({name, at::zeros({4})});
  return all;
}

GraphListing graph_of(std::vector<ListedNode> nodes) {
  GraphListing graph;
  graph.nodes = std::move(nodes);
  return graph;
}

TEST(ModelFacts, ParametersThatAStepDoesNotChangeAreUnused) {
  const GraphListing graph = graph_of({node("%0", "aten::mm", {"input", "fc.weight^T"}, 100),
                                       node("fc.weight", "aten::add_", {"fc.weight", "%0"})});
  const auto facts = facts_of_graph(graph, parameters({"fc.weight", "aux.weight", "aux.bias"}));
  EXPECT_EQ(facts.unused_parameters, (Names{"aux.weight", "aux.bias"}));
  EXPECT_EQ(facts.unused_bytes, 32);
}

TEST(ModelFacts, AStepWithoutAnUpdateTellsNothing) {
  const GraphListing graph = graph_of({node("%0", "aten::mm", {"input", "fc.weight^T"}, 100)});
  EXPECT_TRUE(facts_of_graph(graph, parameters({"fc.weight"})).unused_parameters.empty());
}

// A convolution with a bias in bf16, and a norm.
std::vector<ListedNode> convolution_and_norm() {
  return {node("%0", "aten::_to_copy", {"conv.bias"}),
          node("%1", "aten::convolution", {"input", "conv.weight", "%0"}, 100),
          node("%2", "aten::native_batch_norm", {"%1[8x8]", "bn.weight", "bn.bias"}),
          node("conv.weight", "aten::add_", {"conv.weight", "%2"})};
}

TEST(ModelFacts, ABiasBeforeABatchNormIsFound) {
  const auto all = parameters({"conv.weight", "conv.bias", "bn.weight", "bn.bias"});
  auto nodes = convolution_and_norm();
  EXPECT_EQ(facts_of_graph(graph_of(nodes), all).biases_before_norm, Names{"conv.bias"});
  // Its gradient reads the same tensor.
  nodes.push_back(node("%4", "aten::native_batch_norm_backward", {"%3", "%1"}));
  EXPECT_EQ(facts_of_graph(graph_of(nodes), all).biases_before_norm, Names{"conv.bias"});
  // The bias has an effect where something else reads the layer's output.
  nodes.push_back(node("%5", "aten::relu", {"%1"}));
  EXPECT_TRUE(facts_of_graph(graph_of(nodes), all).biases_before_norm.empty());
}

TEST(ModelFacts, OtherBiasesAreNot) {
  const auto all = parameters({"conv.weight", "conv.bias", "bn.weight", "bn.bias"});
  auto nodes = convolution_and_norm();
  nodes[2].op = "aten::native_layer_norm";
  EXPECT_TRUE(facts_of_graph(graph_of(nodes), all).biases_before_norm.empty());
  nodes = convolution_and_norm();
  nodes[1].arguments.pop_back();
  EXPECT_TRUE(facts_of_graph(graph_of(nodes), all).biases_before_norm.empty());
}

}  // namespace
}  // namespace gallop::app
