#include "gallop/compile/bf16_weight_cache.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/kernel/optimizer_step.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

// A matrix that is multiplied in bf16, and AdamW or SGD. Arguments: what it multiplies, the rate,
// and whether the update is skipped.
struct Layer {
  at::Tensor weight = at::randn({6, 4}), other = at::ones_like(weight);
  Tensors moments = {at::zeros_like(weight), at::zeros_like(weight)};
  at::Tensor steps = at::zeros({1});
  bool adamw = true;

  Tensors state() const { return {weight, other, moments[0], moments[1], steps}; }

  // In mode 1 the weight is changed by another operator.
  Tensors step(const Tensors& inputs, int64_t mode) {
    const at::NoGradGuard no_grad;
    const at::Tensor narrow = weight.to(at::kBFloat16);
    const at::Tensor y = inputs[0].mm(narrow), back = y.mm(narrow.t());
    const at::Tensor gradient = inputs[0].t().mm(y).to(at::kFloat) * other;
    if (mode == 1) {
      weight.sub_(gradient * inputs[1]);
    } else {
      kernel::update({.rule = adamw ? "adamw" : "sgd_momentum",
                      .options = adamw ? std::vector{0.9, 0.999, 1e-8} : std::vector{0.9, 0.0},
                      .parameters = {weight},
                      .gradients = {gradient},
                      .states = adamw ? moments : Tensors{moments[0]},
                      .weight_decays = {0.01},
                      .indices = {0},
                      .steps = steps,
                      .lr = inputs[1],
                      .found_inf = inputs[2]});
    }
    return {back.sum()};
  }

  CompiledFunction compiled(const CompileConfig& config = {}) {
    return {[this](const Tensors& inputs, int64_t mode) { return step(inputs, mode); }, state(),
            config};
  }
};

Tensors arguments(int64_t rows, double skip = 0) {
  return {at::randn({rows, 6}).to(at::kBFloat16), at::full({}, 0.05), at::full({}, skip)};
}

// Whether the graph casts a parameter.
bool rounds(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return name_of(node.op) == "aten::_to_copy" &&
           graph.buffer_of(node.arguments[0].views[0]).kind == Buffer::Kind::kState;
  });
}

bool updates(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return name_of(node.op) == "gallop::update_"; });
}

// A change of both layers before a call.
using Meddle = void (*)(Layer& layer, int64_t call);

struct Story {
  std::string name;
  Meddle before = [](Layer&, int64_t) {};
  bool adamw = true;
};

void PrintTo(const Story& story, std::ostream* out) { *out << story.name; }

class Bf16Weights : public testing::TestWithParam<Story> {};

TEST_P(Bf16Weights, AreBitIdenticalToTheEagerStep) {
  Layer plain, cached;
  plain.adamw = cached.adamw = GetParam().adamw;
  cached.weight.copy_(plain.weight);
  CompiledFunction function = cached.compiled({.verify_every = 1});
  for (int64_t call = 0; call < 10; ++call) {
    GetParam().before(plain, call);
    GetParam().before(cached, call);
    const Tensors inputs = arguments(call % 3 == 2 ? 3 : 5, call == 4 ? 1 : 0);
    const int64_t mode = call % 4 == 3 ? 1 : 0;
    EXPECT_EQ(difference_of_bits(function(inputs, mode)[0], plain.step(inputs, mode)[0]), "")
        << call;
    EXPECT_EQ(difference_of_bits(cached.weight, plain.weight), "") << call;
  }
  EXPECT_EQ(function.report().eager, 0);
  EXPECT_EQ(function.report().verified, 10);
  for (const Graph* graph : function.graphs()) EXPECT_NE(rounds(*graph), updates(*graph));
}

INSTANTIATE_TEST_SUITE_P(
    Bf16WeightCache, Bf16Weights,
    testing::Values(Story{.name = "Adamw"}, Story{.name = "Sgd", .adamw = false},
                    Story{.name = "ChangedByOperators",
                          .before =
                              [](Layer& layer, int64_t call) {
                                const at::NoGradGuard no_grad;
                                if (call % 2 == 1) layer.weight.select(0, 1).mul_(1.5);
                              }},
                    Story{.name = "UpdatedAsideByTheKernel",
                          .before =
                              [](Layer& layer, int64_t call) {
                                if (call == 5)
                                  layer.step({at::full({2, 6}, 0.5, at::kBFloat16),
                                              at::full({}, 0.1), at::zeros({})},
                                             0);
                              }},
                    Story{.name = "GivenOtherMemory", .before = [](Layer& layer, int64_t call) {
                            if (call == 6) layer.weight.set_data(layer.weight.detach() * 2);
                          }}));

TEST(Bf16Weights, FollowEagerCalls) {
  Layer plain, cached;
  cached.weight.copy_(plain.weight);
  CompiledFunction function = cached.compiled({.graphs = 1});
  for (const int64_t rows : {5, 5, 7, 5, 7, 5}) {
    const Tensors inputs = arguments(rows);
    EXPECT_EQ(difference_of_bits(function(inputs)[0], plain.step(inputs, 0)[0]), "");
  }
  EXPECT_EQ(function.report().eager, 2);
}

TEST(Bf16Weights, VerifyDetectsRawWritesOfWeights) {
  Layer layer;
  CompiledFunction function = layer.compiled({.verify_every = 1});
  function(arguments(5));
  function(arguments(5));
  layer.weight.mutable_data_ptr<float>()[3] += 1;
  EXPECT_THROW(function(arguments(5)), InternalError);
}

// Whether the pass removes the cast in a step of this kind.
bool replaces(const Function& function, const Tensors& state, const Tensors& inputs) {
  Graph graph = record(function, inputs).graph;
  KernelCompiler compiler;
  Bf16WeightCache weight_cache(state);
  PassContext context{.compiler = compiler, .weight_cache = &weight_cache};
  EXPECT_TRUE(rounds(graph));
  run_passes(graph, names_of_rounding_passes(), context);
  return !rounds(graph);
}

TEST(Bf16Weights, AreNotCachedIfReadAfterTheUpdateOrReturned) {
  Layer layer;
  const auto step = [&](bool reads_after, bool gives) -> Function {
    return [&layer, reads_after, gives](const Tensors& inputs) -> Tensors {
      const at::Tensor narrow = layer.weight.to(at::kBFloat16);
      const Tensors results = {layer.step(inputs, 0)[0], reads_after ? narrow.sum() : narrow.max()};
      return gives ? Tensors{narrow} : results;
    };
  };
  EXPECT_FALSE(replaces(step(true, false), layer.state(), arguments(5)));
  EXPECT_FALSE(replaces(step(false, true), layer.state(), arguments(5)));
  const Function plain = [&](const Tensors& inputs) { return layer.step(inputs, 0); };
  EXPECT_TRUE(replaces(plain, layer.state(), arguments(5)));
  EXPECT_FALSE(replaces(plain, {layer.steps}, arguments(5)));
}

}  // namespace
}  // namespace gallop::compile
