#include <algorithm>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/threshold_backward.h>
#include <gtest/gtest.h>

#include "gallop/compile/executor.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;

// The operators of the function after the pass, whose results must not have changed.
Names operators_after(const Function& function, const Tensors& inputs) {
  Graph graph = record(function, inputs).graph;
  passes::mean_gradients(graph);
  const Tensors wanted = function(inputs), found = Executor(graph).run(inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::equal(found[i], wanted[i])) << "result " << i;
    EXPECT_EQ(found[i].strides(), wanted[i].strides()) << "result " << i;
  }
  Names names;
  for (const Node& node : graph.nodes) names.push_back(name_of(node.op));
  return names;
}

at::Tensor images(at::ScalarType type) {
  return at::randn({2, 3, 4, 8}).to(type).contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor gradient_of_pool(const at::Tensor& dy, const at::Tensor& x, int64_t width) {
  return at::avg_pool2d_backward(dy, x, {4, width}, {4, width}, {0, 0}, false, true, {});
}

TEST(MeanGradients, OfGlobalPoolingAreDividedOnce) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensors inputs = {at::randn({2, 3, 1, 1}).to(type), images(type)};
    const Function function = [](const Tensors& x) -> Tensors {
      return {at::threshold_backward(gradient_of_pool(x[0], x[1], 8), x[1], 0)};
    };
    EXPECT_EQ(operators_after(function, inputs),
              (Names{"aten::div.Scalar", "aten::threshold_backward"}));
  }
}

TEST(MeanGradients, OfAMeanAreDividedBeforeTheyAreExpanded) {
  const Tensors inputs = {at::randn({2, 3, 1, 1}), images(at::kFloat)};
  const Function function = [](const Tensors& x) -> Tensors {
    return {at::threshold_backward(x[0].expand_as(x[1]) / at::Scalar(32), x[1], 0)};
  };
  const Names names = operators_after(function, inputs);
  EXPECT_EQ(names, (Names{"aten::div.Scalar", "aten::threshold_backward"}));
  Graph graph = record(function, inputs).graph;
  passes::mean_gradients(graph);
  const ViewId made = graph.nodes[0].results[0].views[0];
  EXPECT_EQ(graph.views[static_cast<size_t>(made)].numel(), 6);
}

TEST(MeanGradients, AreLeftWhereSomethingNeedsThemWhole) {
  const Names left = {"aten::avg_pool2d_backward"};
  const Tensors inputs = {at::randn({2, 3, 1, 1}), images(at::kFloat)};
  // An output.
  EXPECT_EQ(
      operators_after([](const Tensors& x) -> Tensors { return {gradient_of_pool(x[0], x[1], 8)}; },
                      inputs),
      left);
  // A pool of a part of the image.
  const Tensors halves = {at::randn({2, 3, 1, 2}), images(at::kFloat)};
  const Names names = operators_after(
      [](const Tensors& x) -> Tensors { return {gradient_of_pool(x[0], x[1], 4) * x[1]}; }, halves);
  EXPECT_EQ(names, (Names{"aten::avg_pool2d_backward", "aten::mul.Tensor"}));
}

TEST(MeanGradients, AreLeftWhereTheCountIsRounded) {
  // 3 x 171 = 513 is no bf16.
  const Tensors inputs = {at::randn({2, 3, 1, 1}).to(at::kBFloat16),
                          at::randn({2, 3, 3, 171}).to(at::kBFloat16)};
  const Names names = operators_after(
      [](const Tensors& x) -> Tensors {
        return {at::avg_pool2d_backward(x[0], x[1], {3, 171}, {3, 171}, {0, 0}, false, true, {}) *
                x[1]};
      },
      inputs);
  EXPECT_EQ(names, (Names{"aten::avg_pool2d_backward", "aten::mul.Tensor"}));
}

}  // namespace
}  // namespace gallop::compile
