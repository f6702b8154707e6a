// Backward passes in two parts next to whole ones.
#include "gallop/parallel/stage_backward.h"

#include <functional>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace gallop::parallel {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string name;
  std::function<at::Tensor(const at::Tensor& x, const Tensors& weights)> forward;
  bool input_requires_grad = true;
};

class StageBackwardOf : public testing::TestWithParam<Case> {};

TEST_P(StageBackwardOf, HasTheBitsOfOnePass) {
  const Case& tested = GetParam();
  const at::Tensor input = at::randn({6, 8});
  Tensors values;
  for (int i = 0; i < 3; ++i) values.push_back(at::randn({8, 8}));
  const at::Tensor gradient = at::randn({6, 8});
  const auto leaves = [&] {
    Tensors all = {input.clone().set_requires_grad(tested.input_requires_grad)};
    for (const at::Tensor& value : values) all.push_back(value.clone().set_requires_grad(true));
    return all;
  };
  const auto forward = [&](const Tensors& all) {
    return tested.forward(all[0], {all.begin() + 1, all.end()});
  };
  const Tensors whole = leaves(), parts = leaves();
  // Two micro-batches, whose gradients are summed.
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    forward(whole).backward(gradient);
    whole[0].mutable_grad().reset();
  }
  forward(whole).backward(gradient);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    parts[0].mutable_grad().reset();
    const Tensors before = {parts[1].grad().defined() ? parts[1].grad().clone() : at::Tensor()};
    StageBackward backward({forward(parts)}, {gradient}, {parts[0]});
    EXPECT_EQ(parts[0].grad().defined(), whole[0].grad().defined());
    if (whole[0].grad().defined()) {
      EXPECT_TRUE(at::equal(parts[0].grad(), whole[0].grad()));
    }
    // Weights have nothing of this pass yet.
    EXPECT_EQ(parts[1].grad().defined(), before[0].defined());
    if (before[0].defined()) {
      EXPECT_TRUE(at::equal(parts[1].grad(), before[0]));
    }
    backward.compute_weight_gradients();
  }
  for (size_t i = 1; i < whole.size(); ++i) {
    ASSERT_EQ(parts[i].grad().defined(), whole[i].grad().defined()) << i;
    if (whole[i].grad().defined()) {
      EXPECT_TRUE(at::equal(parts[i].grad(), whole[i].grad())) << i;
    }
  }
}

// An input and an output that a stage only passes on, and an output without inputs.
TEST(StageBackward, TakesSeveralInputsAndOutputs) {
  const Tensors values = {at::randn({6, 8}), at::randn({6, 8}), at::randn({6, 8}),
                          at::randn({8, 8}), at::randn({8, 8}), at::randn({8, 8})};
  const auto leaves = [&] {
    Tensors all;
    for (const at::Tensor& value : values) all.push_back(value.clone().set_requires_grad(true));
    return all;
  };
  const auto forward = [](const Tensors& x) -> Tensors {
    const at::Tensor hidden = at::linear(x[0], x[3]).tanh() + x[1];
    return {at::linear(hidden, x[4]), x[1], x[2], hidden.relu(), x[5].tanh()};
  };
  const Tensors whole = leaves(), parts = leaves();
  Tensors gradients;
  for (const at::Tensor& output : forward(whole)) gradients.push_back(at::randn_like(output));
  torch::autograd::backward(forward(whole), gradients);
  StageBackward backward(forward(parts), gradients, {parts[0], parts[1], parts[2]});
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(parts[i].grad().defined(), i < 3) << i;
    if (i < 3) {
      EXPECT_TRUE(at::equal(parts[i].grad(), whole[i].grad())) << i;
    }
  }
  backward.compute_weight_gradients();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(at::equal(parts[i].grad(), whole[i].grad())) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StageBackwardOf,
    testing::Values(Case{"Layers",
                         [](const at::Tensor& x, const Tensors& w) {
                           return at::linear(at::linear(at::linear(x, w[0]).relu(), w[1]).relu(),
                                             w[2]);
                         }},
                    Case{"Residual",
                         [](const at::Tensor& x, const Tensors& w) {
                           const at::Tensor y = x + at::linear(x, w[0]);
                           return y + at::linear(at::linear(y, w[1]).tanh(), w[2]);
                         }},
                    Case{"WeightThatIsUsedTwice",
                         [](const at::Tensor& x, const Tensors& w) {
                           return at::linear(at::linear(at::linear(x, w[0]).tanh(), w[1]).tanh(),
                                             w[0]) *
                                  w[2][0];
                         }},
                    Case{"ProductOfWeights",
                         [](const at::Tensor& x, const Tensors& w) {
                           return at::linear(x, w[0] * w[1].t()) + w[2][0];
                         }},
                    Case{"WithoutWeights",
                         [](const at::Tensor& x, const Tensors& /*weights*/) { return x.tanh(); }},
                    Case{"IntegerInput",
                         [](const at::Tensor& x, const Tensors& w) {
                           return at::linear(x, w[0]).relu() * w[1][0];
                         },
                         false},
                    Case{"WithoutInput",
                         [](const at::Tensor& x, const Tensors& w) {
                           return at::linear(x.detach(), w[0]) + w[1][0];
                         }}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::parallel
