#include <algorithm>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/select_backward.h>
#include <ATen/ops/slice_backward.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "gallop/compile/executor.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;
using GraphPass = void (*)(Graph&);

// The operators of the function after the pass, whose results must not have changed.
std::vector<std::string> operators_after(GraphPass pass, const Function& function,
                                         const Tensors& inputs) {
  Graph graph = record(function, inputs).graph;
  pass(graph);
  const Tensors wanted = function(inputs), found = Executor(graph).run(inputs);
  EXPECT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(at::equal(found[i], wanted[i])) << "result " << i;
    EXPECT_EQ(found[i].strides(), wanted[i].strides()) << "result " << i;
  }
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(name_of(node.op));
  return names;
}

using Names = std::vector<std::string>;

at::Tensor row(const at::Tensor& gradient, int64_t index) {
  return at::select_backward(gradient, {3, 4, 5}, 0, index);
}
at::Tensor columns(const at::Tensor& gradient, int64_t begin, int64_t end) {
  return at::slice_backward(gradient, {3, 4, 6}, -1, begin, end, 1);
}

TEST(SliceGradients, OfAllRowsAreStacked) {
  const Tensors inputs = {at::randn({4, 5}), at::randn({4, 5}), at::randn({4, 5})};
  const Function in_order = [](const Tensors& x) -> Tensors {
    return {row(x[0], 0) + row(x[1], 1) + row(x[2], 2)};
  };
  EXPECT_EQ(operators_after(passes::slice_gradients, in_order, inputs), Names{"aten::stack"});
  const Function out_of_order = [](const Tensors& x) -> Tensors {
    return {row(x[0], 2) + (row(x[1], -3) + row(x[2], 1))};
  };
  EXPECT_EQ(operators_after(passes::slice_gradients, out_of_order, inputs), Names{"aten::stack"});
}

TEST(SliceGradients, OfAllColumnsAreConcatenatedAndAddedToOthers) {
  const Tensors inputs = {at::randn({3, 4, 2}), at::randn({3, 4, 4}), at::randn({3, 4, 6}),
                          at::randn({3, 4, 6})};
  const Function function = [](const Tensors& x) -> Tensors {
    return {x[2] + columns(x[0], 0, 2) + columns(x[1], 2, 1000)};
  };
  EXPECT_EQ(operators_after(passes::slice_gradients, function, inputs),
            (Names{"aten::cat", "aten::add.Tensor"}));
}

TEST(SliceGradients, AreLeftWhereTheyDoNotCoverTheTensorOrAreReadElsewhere) {
  const Tensors inputs = {at::randn({3, 4, 2}), at::randn({3, 4, 4}), at::randn({4, 5}),
                          at::randn({4, 5})};
  const auto is_left = [&](const Function& function) {
    const auto names = operators_after(passes::slice_gradients, function, inputs);
    return std::none_of(names.begin(), names.end(), [](const std::string& name) {
      return name == "aten::cat" || name == "aten::stack";
    });
  };
  EXPECT_TRUE(is_left([](const Tensors& x) -> Tensors {
    return {columns(x[0], 0, 2) + columns(x[1], 1, 5)};  // One overlaps the other.
  }));
  EXPECT_TRUE(is_left([](const Tensors& x) -> Tensors {
    return {columns(x[0], 0, 2) + columns(x[0], 2, 4)};  // The last columns are missing.
  }));
  EXPECT_TRUE(is_left(
      [](const Tensors& x) -> Tensors { return {row(x[2], 0) + row(x[3], 1) + row(x[3], 1)}; }));
  EXPECT_TRUE(is_left([](const Tensors& x) -> Tensors {
    const at::Tensor first = columns(x[0], 0, 2);
    return {first + columns(x[1], 2, 6), first};
  }));
  EXPECT_TRUE(is_left([](const Tensors& x) -> Tensors {
    return {at::slice_backward(x[0], {3, 4, 4}, -1, 0, 4, 2) +
            at::slice_backward(x[0], {3, 4, 4}, -1, 1, 4, 2)};  // Every other column.
  }));
}

TEST(OrderedJoins, WriteTheLayoutOfTheCopy) {
  const Tensors inputs = {at::randn({2, 3, 4, 5}), at::randn({2, 3, 4, 5}),
                          at::randn({2, 3, 4, 5})};
  const Function packed = [](const Tensors& x) -> Tensors {
    return {at::stack({x[0], x[1], x[2]}, 0)
                .permute({1, 3, 0, 2, 4})
                .clone(at::MemoryFormat::Contiguous)};
  };
  EXPECT_EQ(operators_after(passes::ordered_joins, packed, inputs), Names{"aten::stack"});
  const Function channels = [](const Tensors& x) -> Tensors {
    return {at::cat({x[0], x[1]}, 1).permute({0, 2, 3, 1}).clone(at::MemoryFormat::Contiguous)};
  };
  EXPECT_EQ(operators_after(passes::ordered_joins, channels, inputs), Names{"aten::cat"});
}

TEST(OrderedJoins, AreLeftWhereTheCopyIsNotAPermutationOrNotTheOnlyReader) {
  const Tensors inputs = {at::randn({2, 3, 4}), at::randn({2, 3, 4})};
  const Names left = {"aten::cat", "aten::clone"};
  const Function part = [](const Tensors& x) -> Tensors {
    return {at::cat({x[0], x[1]}, 1).narrow(1, 1, 4).clone(at::MemoryFormat::Contiguous)};
  };
  EXPECT_EQ(operators_after(passes::ordered_joins, part, inputs), left);
  const Function both = [](const Tensors& x) -> Tensors {
    const at::Tensor joined = at::cat({x[0], x[1]}, 1);
    return {joined, joined.transpose(1, 2).clone(at::MemoryFormat::Contiguous)};
  };
  EXPECT_EQ(operators_after(passes::ordered_joins, both, inputs), left);
}

TEST(Copies, AreRemovedIfTheirOriginalDoesNotChange) {
  const Tensors inputs = {at::randn({4, 5, 6, 7})};
  const Function copied = [](const Tensors& x) -> Tensors {
    return {at::constant_pad_nd(x[0].transpose(1, 2).clone(), {0, 0, 0, 0}, 1) * 2};
  };
  EXPECT_EQ(operators_after(passes::copies, copied, inputs), Names{"aten::mul.Scalar"});
  const Function padded = [](const Tensors& x) -> Tensors {
    return {at::constant_pad_nd(x[0], {0, 1}, 1) * 2};
  };
  EXPECT_EQ(operators_after(passes::copies, padded, inputs).size(), 2U);
  const Function changed = [](const Tensors& x) -> Tensors {
    at::Tensor sum = x[0] + 1;
    const at::Tensor copy = sum.clone();
    sum.narrow(0, 0, 1).zero_();
    return {copy * sum};
  };
  const auto left = operators_after(passes::copies, changed, inputs);
  EXPECT_EQ(std::count(left.begin(), left.end(), "aten::clone"), 1);
  const Function packed = [](const Tensors& x) -> Tensors {
    return {x[0].transpose(1, 2).contiguous() * 2};
  };
  EXPECT_EQ(operators_after(passes::copies, packed, inputs).size(), 2U);
  const Function result = [](const Tensors& x) -> Tensors { return {(x[0] + 1).clone()}; };
  EXPECT_EQ(operators_after(passes::copies, result, inputs).size(), 2U);
}

}  // namespace
}  // namespace gallop::compile
