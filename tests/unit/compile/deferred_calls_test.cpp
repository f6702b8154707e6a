#include "gallop/compile/deferred_calls.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/compile/difference.h"
#include "gallop/compile/recorder.h"
#include "gallop/kernel/optimizer_step.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

// A function of one argument that changes three tensors of 4 x 6.
struct Updating {
  std::string name;
  std::function<Tensors(const at::Tensor& x, const Tensors& state)> function;
};

void PrintTo(const Updating& updating, std::ostream* out) { *out << updating.name; }

class Updates : public testing::TestWithParam<Updating> {};

Tensors new_state() {
  Tensors state;
  for (int i = 1; i <= 3; ++i) state.push_back(at::full({4, 6}, i, at::kFloat));
  return state;
}

// Deferred calls are flushed as soon as they are needed, and at the end on request.
TEST_P(Updates, AreFlushedWhenNeeded) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::arange(24, at::kFloat).view({4, 6}) / 7;
  Tensors wanted_state = new_state();
  const Tensors wanted = GetParam().function(x.clone(), wanted_state);
  const Tensors state = new_state();
  const Function function = [&](const Tensors& in) { return GetParam().function(in[0], state); };
  const Recording recording = record(function, {x});
  ASSERT_EQ(recording.refusal, "");
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(difference_of_bits(recording.results[i], wanted[i]), "") << i;
  }
  for (const Change& change : recording.changes) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (!change.state.is_alias_of(state[i])) continue;
      EXPECT_EQ(difference_of_bits(change.after.view(at::kFloat).view({4, 6}), wanted_state[i]),
                "");
    }
  }
  const Recording graph_only = record(function, {x}, Outcome::kNotWanted);
  EXPECT_EQ(difference(recording.graph, graph_only.graph), "");
  EXPECT_TRUE(graph_only.results.empty() && graph_only.changes.empty());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(difference_of_bits(state[i], new_state()[i]), "");
  }
}

at::Tensor adamw_norm(const at::Tensor& gradient, const Tensors& state) {
  return kernel::update({.rule = "adamw",
                         .options = {0.9, 0.999, 1e-8},
                         .parameters = {state[0]},
                         .gradients = {gradient},
                         .states = {state[1], state[2]},
                         .weight_decays = {0.1},
                         .indices = {0},
                         .steps = at::zeros({1}),
                         .lr = at::full({}, 0.1)});
}

INSTANTIATE_TEST_SUITE_P(
    , Updates,
    testing::Values(Updating{"AtTheEnd",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               const at::Tensor y = x * 2;
                               state[0].add_(y);
                               state[1].mul_(x).sub_(state[0], 0.5);
                               return {y.sum()};
                             }},
                    Updating{"ReadAfterwards",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               state[0].add_(x);
                               state[1].mul_(state[0]);
                               const at::Tensor y = state[1].t().matmul(x);
                               state[2].copy_(x).mul_(3);
                               return {y, state[2].select(0, 1)};
                             }},
                    Updating{"OfWhatChangesAfterwards",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               const at::Tensor y = x * 2;
                               state[0].add_(y);
                               y.mul_(3);
                               state[1].add_(y);
                               state[0].mul_(state[1]);
                               return {y};
                             }},
                    Updating{"OfWhatGetsOtherSizesAfterwards",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               at::Tensor y = x * 2;
                               state[0].add_(y);
                               y.t_();
                               return {y, state[0] * 1};
                             }},
                    Updating{"OfAPartAndOfAll",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               state[0].select(0, 1).fill_(5);
                               state[0].add_(x);
                               state[0].select(1, 2).zero_();
                               return {state[0].view({24}) + 1};
                             }},
                    Updating{"OfAnArgument",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               x.add_(state[0]);
                               state[0].add_(x);
                               return {};
                             }},
                    Updating{"InOutArguments",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               at::Tensor out = state[0];
                               at::mul_out(out, x, x);
                               return {out + 1};
                             }},
                    Updating{"WithANewResult",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               return {adamw_norm(x * 2, state)};
                             }},
                    Updating{"WithANewResultThatIsUsed",
                             [](const at::Tensor& x, const Tensors& state) -> Tensors {
                               const at::Tensor norm = adamw_norm(x * 2, state);
                               return {norm * 2, state[0] * 1};
                             }}),
    [](const auto& updating) { return updating.param.name; });

TEST(Record, RejectsStateThatIsResized) {
  const at::Tensor state = at::zeros({2});
  const Recording recording = record(
      [&](const Tensors& in) -> Tensors {
        at::Tensor out = state;
        return {at::mul_out(out, in[0], in[0])};
      },
      {at::ones({1})});
  EXPECT_NE(recording.refusal.find("changes the size of what it writes"), std::string::npos)
      << recording.refusal;
  EXPECT_EQ(state.sizes(), at::IntArrayRef({2}));
}

}  // namespace
}  // namespace gallop::compile
