#include <algorithm>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/compile/arena.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/random_functions.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

int64_t planned(const Graph& graph) { return plan_memory(graph, Arena::kMargin).bytes; }

std::vector<std::string> calls_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(name_of(node.op));
  return names;
}

// Makes dry runs of both, from the same random numbers on.
void expect_same_outcome(const Graph& got, const Graph& wanted, const Tensors& inputs) {
  const auto trial = [&](const Graph& graph) {
    Executor executor(graph, Arena::reserve());
    return record([&](const Tensors& in) { return executor.run(in); }, inputs);
  };
  const Recording a = trial(got), b = trial(wanted);
  ASSERT_EQ(a.results.size(), b.results.size());
  for (size_t i = 0; i < a.results.size(); ++i) {
    EXPECT_EQ(difference_of_bits(a.results[i], b.results[i]), "") << i;
  }
  ASSERT_EQ(a.changes.size(), b.changes.size());
  for (const Change& change : a.changes) {
    const auto other = std::find_if(b.changes.begin(), b.changes.end(), [&](const Change& c) {
      return c.state.is_alias_of(change.state);
    });
    ASSERT_NE(other, b.changes.end());
    EXPECT_EQ(difference_of_bits(change.after, other->after), "");
  }
}

Graph ordered(const Function& function, const Tensors& inputs) {
  const Graph recorded = record(function, inputs).graph;
  Graph graph = recorded;
  passes::schedule(graph);
  EXPECT_LE(planned(graph), planned(recorded));
  expect_same_outcome(graph, recorded, inputs);
  return graph;
}

constexpr int64_t kLarge = 256 * 256 * 4;

TEST(Schedule, AllocatesLargeTensorsLate) {
  const Function function = [](const Tensors& in) -> Tensors {
    Tensors large, sums;
    for (int i = 1; i <= 8; ++i) large.push_back(in[0] * i);
    for (const at::Tensor& tensor : large) sums.push_back(tensor.sum());
    return sums;
  };
  const Graph graph = ordered(function, {at::randn({256, 256})});
  EXPECT_LT(planned(graph), 2 * kLarge);
}

TEST(Schedule, ConsumesLargeTensorsEarly) {
  const Function function = [](const Tensors& in) -> Tensors {
    Tensors large, sums;
    at::Tensor x = in[0];
    for (int i = 1; i <= 8; ++i) large.push_back(x = x.tanh());
    for (const at::Tensor& tensor : large) sums.push_back(tensor.sum());
    return sums;
  };
  const Graph graph = ordered(function, {at::randn({256, 256})});
  EXPECT_LT(planned(graph), 3 * kLarge);
}

TEST(Schedule, KeepsTheOrderOfRandomOperators) {
  const Function function = [](const Tensors& in) -> Tensors {
    const at::Tensor first = at::rand({256, 256}), second = at::rand({256, 256}) * in[0];
    const at::Tensor third = at::rand({16});
    return {second.sum(), first.sum(), third};
  };
  const Graph graph = ordered(function, {at::ones({256, 256})});
  std::vector<std::string> draws = calls_of(graph);
  std::erase_if(draws, [](const std::string& name) { return name != "aten::uniform_"; });
  EXPECT_LE(draws.size(), 3U);
}

TEST(Schedule, RespectsWritesOfState) {
  const at::NoGradGuard no_grad;
  const at::Tensor state = at::ones({256, 256});
  const Function function = [&](const Tensors& in) -> Tensors {
    const at::Tensor before = state * 2, other = in[0] + 1;
    state.add_(other);
    const at::Tensor after = state * 3;
    state.mul_(0.5);
    return {after.sum(), before.sum(), other.sum()};
  };
  ordered(function, {at::ones({256, 256})});
}

TEST(Schedule, KeepsTheRecordedOrderWithoutGain) {
  const Function function = [](const Tensors& in) -> Tensors {
    return {((in[0] * 2).tanh() + in[0]).sum()};
  };
  const Tensors inputs = {at::ones({64, 64})};
  EXPECT_EQ(calls_of(ordered(function, inputs)), calls_of(record(function, inputs).graph));
}

TEST(Schedule, RandomGraphsNeedNoMoreMemory) {
  int64_t less = 0;
  with_random_programs(
      300, [&](const Program& program, const RandomFunction& function, const Tensors& inputs) {
        const Graph recorded = record(function, inputs).graph;
        Graph graph = recorded;
        passes::schedule(graph);
        EXPECT_LE(planned(graph), planned(recorded)) << text_of(program);
        less += planned(graph) < planned(recorded) ? 1 : 0;
        auto a = calls_of(graph), b = calls_of(recorded);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        EXPECT_EQ(a, b);
      });
  EXPECT_GT(less, 20);
}

}  // namespace
}  // namespace gallop::compile
