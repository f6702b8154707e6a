#include "gallop/compile/passes/rematerialize.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/compile/arena.h"
#include "gallop/compile/executor.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/random_functions.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;
using passes::RematerializeLimits;

// Without limits on cost and gain.
constexpr RematerializeLimits kAny{.most_time = 1e9, .least_saved = 0};

int64_t planned(const Graph& graph) { return plan_memory(graph, Arena::kMargin).bytes; }

int64_t calls_of(const Graph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return name_of(node.op) == op; });
}

// Results and changed state of a dry run, from the same random numbers on.
Tensors outcome_of(const Graph& graph, const Tensors& inputs) {
  Executor executor(graph, Arena::reserve());
  const Recording trial = record([&](const Tensors& in) { return executor.run(in); }, inputs);
  Tensors all = trial.results;
  for (const Change& change : trial.changes) all.push_back(change.after);
  return all;
}

struct Recomputed {
  Graph before, after;
};

Recomputed recomputed(const Function& function, const Tensors& inputs,
                      const RematerializeLimits& limits) {
  Recording recording = record(function, inputs);
  EXPECT_EQ(recording.refusal, "");
  Recomputed graphs{.before = recording.graph, .after = recording.graph};
  passes::rematerialize(graphs.after, limits);
  EXPECT_LE(planned(graphs.after), planned(graphs.before));
  const Tensors got = outcome_of(graphs.after, inputs), wanted = outcome_of(graphs.before, inputs);
  EXPECT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    EXPECT_EQ(difference_of_bits(got[i], wanted[i]), "") << i;
  }
  return graphs;
}

// Layers whose activations the backward pass needs besides what they are made from.
Tensors train_layers(const Tensors& weights, at::Tensor x) {
  for (const at::Tensor& weight : weights) x = at::gelu(x.matmul(weight));
  x.sum().backward();
  Tensors gradients;
  for (const at::Tensor& weight : weights) {
    gradients.push_back(weight.grad().sum());
    weight.mutable_grad().reset();
  }
  return gradients;
}

struct Layers {
  Tensors weights;
  Tensors inputs;

  Layers(int64_t count, int64_t rows, int64_t width) : inputs{at::randn({rows, width})} {
    for (int64_t i = 0; i < count; ++i) {
      weights.push_back((at::randn({width, width}) / width).requires_grad_());
    }
  }
  Function function() const {
    return [this](const Tensors& in) { return train_layers(weights, in[0]); };
  }
};

TEST(Rematerialize, RecomputesActivationsInTheBackwardPass) {
  const Layers layers(6, 128, 64);
  const auto graphs = recomputed(layers.function(), layers.inputs, kAny);
  EXPECT_EQ(calls_of(graphs.before, "aten::gelu"), 6);
  EXPECT_GE(calls_of(graphs.after, "aten::gelu"), 10);
  EXPECT_LT(planned(graphs.after), planned(graphs.before) * 3 / 4);
}

// GEMMs of this width take long compared with a gelu.
TEST(Rematerialize, CostsAtMostOnePercentOfTheStep) {
  const Layers narrow(6, 128, 64), wide(4, 1024, 1024);
  const auto never = recomputed(narrow.function(), narrow.inputs, RematerializeLimits());
  EXPECT_EQ(calls_of(never.after, "aten::gelu"), 6);
  const auto some = recomputed(wide.function(), wide.inputs, RematerializeLimits());
  EXPECT_EQ(calls_of(some.after, "aten::gelu"), 5);
  EXPECT_LT(planned(some.after), planned(some.before) * 9 / 10);
}

TEST(Rematerialize, KeepsGraphsWithLittleGain) {
  const Layers layers(6, 128, 64);
  const auto graphs =
      recomputed(layers.function(), layers.inputs, {.most_time = 1e9, .least_saved = 0.9});
  EXPECT_EQ(graphs.after.nodes.size(), graphs.before.nodes.size());
}

// Used twice: before and after the memory peak.
Tensors around_the_peak(const at::Tensor& value, const at::Tensor& x) {
  const at::Tensor early = value.sum();
  const at::Tensor large = x.matmul(x).matmul(x);
  return {early, (large.matmul(x) + large).sum(), value.amax()};
}

TEST(Rematerialize, DoesNotRepeatRandomOperators) {
  const Function function = [](const Tensors& in) {
    return around_the_peak(at::bernoulli(in[0].sigmoid()), in[0]);
  };
  const auto graphs = recomputed(function, {at::randn({64, 64})}, kAny);
  EXPECT_EQ(calls_of(graphs.after, "aten::bernoulli"), 1);
}

TEST(Rematerialize, DoesNotReadChangedTensors) {
  const at::NoGradGuard no_grad;
  const at::Tensor state = at::ones({64, 64});
  const Function of_state = [&](const Tensors& in) {
    const at::Tensor value = state * 2;
    Tensors results = around_the_peak(value, in[0]);
    state.add_(1);
    return results;
  };
  const Tensors inputs = {at::randn({64, 64})};
  EXPECT_EQ(calls_of(recomputed(of_state, inputs, kAny).after, "aten::mul.Scalar"), 2);
  const Function of_changing_state = [&](const Tensors& in) {
    const at::Tensor value = state * 2;
    const at::Tensor early = value.sum();
    state.add_(1);
    const at::Tensor large = in[0].matmul(in[0]).matmul(state);
    return Tensors{early, (large.matmul(in[0]) + large).sum(), value.amax()};
  };
  EXPECT_EQ(calls_of(recomputed(of_changing_state, inputs, kAny).after, "aten::mul.Scalar"), 1);
}

TEST(Rematerialize, RandomGraphsAreBitIdentical) {
  int64_t changed = 0;
  with_random_programs(
      400, [&](const Program& program, const RandomFunction& function, const Tensors& inputs) {
        const auto graphs = recomputed(function, inputs, kAny);
        changed += graphs.after.nodes.size() > graphs.before.nodes.size() ? 1 : 0;
        if (testing::Test::HasFailure()) FAIL() << text_of(program);
      });
  EXPECT_GE(changed, 5);
}

}  // namespace
}  // namespace gallop::compile
