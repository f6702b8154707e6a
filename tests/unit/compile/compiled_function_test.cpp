#include "gallop/compile/compiled_function.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "gallop/compile/executor.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/compile/verify.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

void seed(uint64_t number) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(number);
}

// The number of calls, as a function may count them on the host.
int call_number = 0;

// Kernels and generated loops round a little differently.
CompileConfig with_equal_bits() { return {.passes_off = names_of_rounding_passes()}; }

// Calls `function` as it is and compiled with the same arguments, and expects equal bits.
// Returns the report of the compiled one.
template <typename MakeFunction>
CompileReport expect_same(const MakeFunction& make, const std::vector<Tensors>& calls) {
  Tensors plain_state, compiled_state;
  const Function plain = make(plain_state);
  const Function function = make(compiled_state);
  CompiledFunction compiled([&](const Tensors& inputs, int64_t) { return function(inputs); }, {},
                            with_equal_bits());
  for (size_t i = 0; i < calls.size(); ++i) {
    call_number = static_cast<int>(i);
    seed(i);
    const Tensors wanted = plain(calls[i]);
    seed(i);
    const Tensors got = compiled(calls[i]);
    EXPECT_EQ(got.size(), wanted.size());
    for (size_t j = 0; j < wanted.size(); ++j) EXPECT_TRUE(at::equal(got[j], wanted[j])) << i << j;
    for (size_t j = 0; j < plain_state.size(); ++j) {
      EXPECT_TRUE(at::equal(compiled_state[j], plain_state[j])) << "call " << i << ", state " << j;
    }
  }
  return compiled.report();
}

std::vector<Tensors> calls_of(const std::vector<at::IntArrayRef>& sizes, int count) {
  seed(99);
  std::vector<Tensors> calls;
  for (int i = 0; i < count; ++i) {
    Tensors inputs;
    for (const auto& size : sizes) inputs.push_back(at::randn(size));
    calls.push_back(inputs);
  }
  return calls;
}

at::Tensor parameter(at::IntArrayRef sizes) {
  seed(7);
  return at::randn(sizes).requires_grad_();
}

// One step of gradient descent on a small network.
Function descent(Tensors& state) {
  state = {parameter({6, 4}), parameter({6}), parameter({3, 6})};
  return [weights = state](const Tensors& inputs) -> Tensors {
    for (const at::Tensor& weight : weights) weight.mutable_grad().reset();
    auto x = at::linear(inputs[0], weights[0], weights[1]);
    x = at::dropout(at::gelu(x), 0.25, true);
    x = at::linear(x.view({-1, 6}), weights[2]);
    const at::Tensor loss = x.square().mean();
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const at::Tensor& weight : weights) weight.sub_(weight.grad() * (inputs[1] * 0.01));
    return {loss.detach()};
  };
}

TEST(CompiledFunction, TrainsBitIdenticallyToTheFunction) {
  const auto report = expect_same(descent, calls_of({{5, 4}, {}}, 7));
  EXPECT_EQ(report.recorded, 2);
  EXPECT_EQ(report.replayed, 7);
  EXPECT_EQ(report.graphs, 1);
}

TEST(CompiledFunction, HasOneGraphForEachSetOfShapes) {
  auto calls = calls_of({{5, 4}, {}}, 4);
  const auto others = calls_of({{2, 4}, {}}, 4);
  calls.insert(calls.begin() + 2, others.begin(), others.end());
  const auto report = expect_same(descent, calls);
  EXPECT_EQ(report.graphs, 2);
  EXPECT_EQ(report.replayed, 8);
  EXPECT_EQ(report.eager, 0);
}

TEST(CompiledFunction, FollowsViewsAndChangesInPlace) {
  const auto function = [](Tensors& state) -> Function {
    state = {at::zeros({4, 6}), at::zeros({6})};
    return [state](const Tensors& inputs) -> Tensors {
      auto rows = state[0].narrow(0, 1, 2);
      rows.add_(inputs[0]);
      state[1].copy_(state[0].t().select(1, 2)).mul_(2);
      auto y = inputs[0].clone();
      y.select(0, 0).zero_();
      return {y, y.t(), state[0].sum(0) + y[1]};
    };
  };
  EXPECT_EQ(expect_same(function, calls_of({{2, 6}}, 5)).replayed, 5);
}

TEST(CompiledFunction, AcceptsArgumentsAtAnyAddress) {
  auto calls = calls_of({{5, 4}}, 5);
  for (auto& inputs : calls) inputs[0] = at::cat({at::ones({3, 4}), inputs[0]}).narrow(0, 3, 5);
  calls.push_back({calls[0][0].clone()});
  const auto twice = [](Tensors&) -> Function {
    return [](const Tensors& inputs) -> Tensors { return {inputs[0] * 2, inputs[0]}; };
  };
  EXPECT_EQ(expect_same(twice, calls).replayed, 6);
}

TEST(CompiledFunction, RunsEagerlyIfAValueIsReadOnTheHost) {
  const auto function = [](Tensors&) -> Function {
    return [](const Tensors& inputs) -> Tensors {
      return {inputs[0].sum().item<float>() > 0 ? inputs[0] + 1 : inputs[0] - 1};
    };
  };
  const auto report = expect_same(function, calls_of({{3}}, 6));
  EXPECT_EQ(report.replayed, 0);
  EXPECT_EQ(report.recorded, 2);
  EXPECT_EQ(report.eager, 6);
  ASSERT_EQ(report.reasons.size(), 1U);
  EXPECT_EQ(report.reasons[0], "aten::_local_scalar_dense reads a value on the host");
}

TEST(CompiledFunction, RunsEagerlyIfAScalarChangesFromCallToCall) {
  const auto function = [](Tensors&) -> Function {
    return [](const Tensors& inputs) -> Tensors { return {inputs[0] * (0.5 + call_number)}; };
  };
  const auto report = expect_same(function, calls_of({{3}}, 6));
  EXPECT_EQ(report.recorded, 2);
  EXPECT_EQ(report.replayed, 1);
  EXPECT_EQ(report.eager, 5);
  EXPECT_EQ(report.graphs, 0);
  ASSERT_EQ(report.reasons.size(), 1U);
  EXPECT_NE(report.reasons[0].find("aten::mul.Scalar (node 0) is given 'other' 0.5 and then 1.5"),
            std::string::npos)
      << report.reasons[0];
}

TEST(CompiledFunction, RunsEagerlyIfSizesDependOnTheData) {
  const auto function = [](Tensors&) -> Function {
    return [](const Tensors& inputs) -> Tensors { return {inputs[0].nonzero()}; };
  };
  const auto report = expect_same(function, calls_of({{3}}, 4));
  EXPECT_EQ(report.replayed, 0);
  EXPECT_EQ(report.reasons.at(0), "aten::nonzero has results whose sizes depend on the data");
}

// An operator whose result has other strides in a replay than when its function calls it.
bool is_in_function = false;
at::Tensor fickle(const at::Tensor& x) {
  return is_in_function ? x.clone() : x.t().contiguous().t();
}
TORCH_LIBRARY(gallop_test_fickle, library) { library.def("fickle(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(gallop_test_fickle, CPU, library) { library.impl("fickle", fickle); }

TEST(CompiledFunction, CompilesRecurrentLayers) {
  const Tensors weights = {at::randn({32, 6}), at::randn({32, 8}), at::randn({32}),
                           at::randn({32})};
  for (const at::Tensor& weight : weights) weight.set_requires_grad(true);
  const auto function = [&](const Tensors& in, int64_t) -> Tensors {
    const at::Tensor state = at::zeros({1, in[0].size(0), 8});
    const auto [y, h, c] =
        at::lstm(in[0], {state, state}, weights, true, 1, 0.0, true, false, true);
    const auto loss = y.mul(y).sum();
    Tensors gradients;
    loss.backward();
    Tensors results{loss.detach()};
    for (const at::Tensor& weight : weights) {
      results.push_back(weight.grad());
      weight.mutable_grad() = at::Tensor();
    }
    return results;
  };
  CompiledFunction compiled(function, weights, with_equal_bits());
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::randn({4, 5, 6});
    const Tensors wanted = function({x}, 0), found = compiled({x});
    for (size_t k = 0; k < wanted.size(); ++k) EXPECT_TRUE(wanted[k].equal(found[k])) << k;
  }
  EXPECT_EQ(compiled.report().replayed, 3);
  EXPECT_EQ(compiled.report().reasons, std::vector<std::string>());
}

TEST(CompiledFunction, RunsEagerlyIfTheFirstReplayMakesAnotherLayout) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("gallop_test_fickle::fickle", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  const at::Tensor count = at::zeros({2});
  const auto function = [&](const Tensors& in, int64_t) -> Tensors {
    count.add_(1);  // Written before the mismatch.
    is_in_function = true;
    const at::Tensor y = op.call(in[0]);
    is_in_function = false;
    return {y.mul(2)};
  };
  CompiledFunction compiled(function, {count}, with_equal_bits());
  const at::Tensor x = at::randn({3, 4});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(compiled({x})[0].equal(x.mul(2)));
    EXPECT_EQ(count[0].item<float>(), static_cast<float>(i));
  }
  EXPECT_EQ(compiled.report().eager, 3);
  EXPECT_EQ(compiled.report().graphs, 0);
  ASSERT_EQ(compiled.report().reasons.size(), 1U);
  EXPECT_EQ(compiled.report().reasons[0],
            "gallop_test_fickle::fickle made a tensor of another layout than when it was recorded "
            "(Float [3, 4] with strides [1, 3] instead of Float [3, 4] with strides [4, 1])");
}

TEST(CompiledFunction, RunsEagerlyIfMemoryIsWrittenWithoutAnOperator) {
  const auto function = [](Tensors&) -> Function {
    return [](const Tensors& inputs) -> Tensors {
      const at::Tensor number = at::empty({});
      *number.mutable_data_ptr<float>() = static_cast<float>(call_number);
      return {inputs[0] + number};
    };
  };
  const auto report = expect_same(function, calls_of({{3}}, 4));
  EXPECT_EQ(report.replayed, 0);
  EXPECT_EQ(report.reasons.at(0),
            "aten::add.Tensor reads a tensor that was filled without an operator");
}

TEST(CompiledFunction, RunsEagerlyIfACapturedTensorChangesFromCallToCall) {
  const auto function = [](Tensors&) -> Function {
    return [tables = Tensors{at::ones({3}), at::zeros({3})}](const Tensors& inputs) -> Tensors {
      return {inputs[0] + tables[static_cast<size_t>(call_number % 2)]};
    };
  };
  const auto report = expect_same(function, calls_of({{3}}, 5));
  EXPECT_EQ(report.replayed, 1);
  EXPECT_NE(report.reasons.at(0).find("differs at each call"), std::string::npos);
}

TEST(CompiledFunction, IgnoresInitializationInTheFirstCall) {
  const auto function = [](Tensors&) -> Function {
    return [table = std::make_shared<at::Tensor>()](const Tensors& inputs) -> Tensors {
      if (!table->defined()) {
        *table = at::empty({3});
        for (int i = 0; i < 3; ++i) table->mutable_data_ptr<float>()[i] = static_cast<float>(i);
      }
      return {inputs[0] * *table};
    };
  };
  const auto report = expect_same(function, calls_of({{3}}, 6));
  EXPECT_EQ(report.recorded, 3);
  EXPECT_EQ(report.replayed, 6);
}

TEST(CompiledFunction, HasNoSideEffectsIfItCannotBeRecorded) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  CompiledFunction compiled(
      [&](const Tensors& inputs, int64_t) -> Tensors {
        const at::NoGradGuard no_grad;
        weight.sub_(inputs[0]);
        const at::Tensor noise = at::randn({3});
        return {weight.sum().item<float>() > 0 ? noise : -noise};
      },
      {weight});
  seed(3);
  const at::Tensor noise = at::randn({3});
  seed(3);
  EXPECT_TRUE(at::equal(compiled({at::ones({3}) * 0.25})[0], noise));
  EXPECT_EQ(compiled.report().recorded, 2);
  EXPECT_EQ(weight.sum().item<float>(), 0.75F * 3);
}

TEST(Verify, AgreesWithTheFunctionWithoutSideEffects) {
  Tensors state, other_state;
  const Function function = descent(state), other = descent(other_state);
  CompiledFunction verified(
      [&](const Tensors& inputs, int64_t) { return function(inputs); }, state,
      {.verify_every = 2, .passes_off = {"activations", "linear-layers", "fuse"}});
  for (const auto& inputs : calls_of({{5, 4}, {}}, 5)) {
    seed(1);
    const at::Tensor got = verified(inputs)[0];
    seed(1);
    EXPECT_TRUE(at::equal(got, other(inputs)[0]));
  }
  EXPECT_TRUE(at::equal(state[0], other_state[0]));
  EXPECT_EQ(verified.report().verified, 3);
}

TEST(Verify, NamesTheFirstNodeThatDiffers) {
  Tensors state;
  const Function function = descent(state);
  const auto inputs = calls_of({{5, 4}, {}}, 1)[0];
  Graph graph = record(function, inputs).graph;
  EXPECT_EQ(find_difference(function, graph, inputs), "");
  for (Node& node : graph.nodes) {
    if (name_of(node.op) != "aten::gelu") continue;
    node.arguments[1] = Operand::of(c10::IValue("tanh"));
  }
  EXPECT_EQ(find_difference(function, graph, inputs), "");  // Nearly as small as a rounding error.
  for (Node& node : graph.nodes) {
    if (name_of(node.op) != "aten::gelu_backward") continue;
    std::swap(node.arguments[0], node.arguments[1]);
  }
  const std::string found = find_difference(function, graph, inputs);
  EXPECT_NE(found.find("; the first to differ is aten::gelu_backward, by "), std::string::npos)
      << found;
}

TEST(MakeValues, ACopyIntoNewMemoryIsACast) {
  const Function function = [](const Tensors& inputs) -> Tensors {
    const at::Tensor& x = inputs[0];
    const auto nhwc = at::empty_like(x, at::kBFloat16, at::MemoryFormat::ChannelsLast).copy_(x);
    const auto rows = at::empty({2, 3, 4, 5}).copy_(nhwc);
    const auto broadcast = at::empty({2, 3, 4, 5}).copy_(x.select(0, 0));
    return {nhwc, rows, broadcast};
  };
  const Tensors inputs = {at::randn({2, 3, 4, 5})};
  Graph graph = record(function, inputs).graph;
  KernelCompiler compiler;
  PassContext context{.compiler = compiler};
  run_passes(graph, names_of_rounding_passes(), context);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(name_of(node.op));
  const std::vector<std::string> wanted = {"aten::_to_copy", "aten::_to_copy",
                                           "aten::empty.memory_format", "aten::copy_"};
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(find_difference(function, graph, inputs), "");
  const Tensors got = Executor(graph).run(inputs), expected = function(inputs);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i], expected[i]));
    EXPECT_EQ(got[i].strides(), expected[i].strides());
  }
}

TEST(Record, ReturnsChangedStateWithoutSideEffects) {
  const at::Tensor weight = at::ones({2, 3}), statistics = at::zeros({3});
  seed(5);
  const at::Tensor before = at::rand({1});
  seed(5);
  const Recording recording = record(
      [&](const Tensors& inputs) -> Tensors {
        weight.select(0, 1).add_(inputs[0]);
        statistics.copy_(weight.sum(0)).add_(at::rand({1}) * 0);
        return {statistics * 2};
      },
      {at::ones({3})});
  EXPECT_TRUE(at::equal(at::rand({1}), before));
  EXPECT_EQ(weight.sum().item<float>(), 6);
  EXPECT_EQ(statistics.sum().item<float>(), 0);
  EXPECT_EQ(recording.results[0].sum().item<float>(), 18);
  ASSERT_EQ(recording.changes.size(), 2U);
  for (const Change& change : recording.changes) {
    const at::Tensor after = change.after.view(at::kFloat);
    EXPECT_EQ(after.sum().item<float>(), 9);
    EXPECT_EQ(after.numel(), change.state.is_alias_of(weight) ? 6 : 3);
  }
}

TEST(CompiledFunction, RecordsAgainIfTheStateIsReallocated) {
  const at::Tensor weight = at::ones({3});
  CompiledFunction compiled(
      [&](const Tensors& inputs, int64_t) -> Tensors { return {inputs[0] * weight}; }, {weight});
  const at::Tensor x = at::ones({3});
  for (int i = 0; i < 3; ++i) compiled({x});
  EXPECT_EQ(compiled.report().recorded, 2);
  weight.set_data(at::zeros({3}) + 5);
  EXPECT_EQ(compiled({x})[0].sum().item<float>(), 15);
  EXPECT_EQ(compiled.report().recorded, 3);
}

TEST(CompiledFunction, HasOneGraphForEachMode) {
  CompiledFunction compiled(
      [&](const Tensors& inputs, int64_t mode) -> Tensors {
        return {mode == 0 ? inputs[0] + 1 : inputs[0] - 1};
      },
      {});
  const at::Tensor x = at::zeros({});
  for (int i = 0; i < 6; ++i) {
    const int64_t mode = i % 2;
    EXPECT_EQ(compiled({x}, mode)[0].item<float>(), mode == 0 ? 1 : -1);
  }
  EXPECT_EQ(compiled.report().graphs, 2);
}

TEST(CompiledFunction, RunsEagerlyBeyondTheMaximumNumberOfShapes) {
  CompiledFunction compiled(
      [](const Tensors& inputs, int64_t) -> Tensors { return {inputs[0] * 2}; }, {}, {.graphs = 2});
  for (int64_t size : {1, 2, 3, 1, 2, 3}) {
    EXPECT_EQ(compiled({at::ones({size})})[0].sum().item<float>(), 2.0F * static_cast<float>(size));
  }
  EXPECT_EQ(compiled.report().graphs, 2);
  EXPECT_EQ(compiled.report().replayed, 4);
  EXPECT_EQ(compiled.report().eager, 2);
}

}  // namespace
}  // namespace gallop::compile
