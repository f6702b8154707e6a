#include "gallop/train/gradient_order.h"

#include <algorithm>
#include <set>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/parallel/gradient_hooks.h"
#include "unit/parallel/fake_collectives.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

class GradientOrder : public testing::TestWithParam<Case> {};

// The order in which gradients become ready in the backward pass of a step.
std::vector<std::string> order_in_a_step(const Case& tested, int64_t rows) {
  Trainee trainee(tested, std::nullopt);
  NamedTensors parameters = trainee.model->parameters();
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back(tensor);
  std::vector<std::string> order;
  const parallel::GradientHooks hooks(tensors,
                                      [&](size_t i) { order.push_back(parameters[i].name); });
  const auto [input, target] = batch_of(tested, rows);
  trainee.step->run(labeled(input, target), 0, 0.01, /*count_correct=*/true);
  return order;
}

TEST_P(GradientOrder, IsThatOfAStepAndLeavesNoTrace) {
  const Case& tested = GetParam();
  Trainee trainee(tested, std::nullopt);
  NamedTensors before;
  for (const auto& [name, tensor] : trainee.everything()) {
    before.push_back({name, tensor.detach().clone()});
  }
  const auto [input, target] = batch_of(tested, 3);
  const auto order = gradient_order(*trainee.model, labeled(input, target), tested.config.precision,
                                    *tested.config.loss);
  EXPECT_EQ(order, order_in_a_step(tested, 7));
  EXPECT_EQ(order, gradient_order(*trainee.model, labeled(input, target), tested.config.precision,
                                  *tested.config.loss))
      << "at a resume it is found again";
  const NamedTensors after = trainee.everything();
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_TRUE(at::equal(after[i].tensor, before[i].tensor)) << after[i].name;
    EXPECT_FALSE(after[i].tensor.grad().defined()) << after[i].name;
  }
  std::set<std::string> names(order.begin(), order.end()), all;
  for (const auto& [name, tensor] : trainee.model->parameters()) all.insert(name);
  EXPECT_EQ(names, all);
  EXPECT_EQ(order.size(), all.size()) << "each once";
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, GradientOrder,
    testing::Values(Case{"Mlp",
                         [] {
                           return make_mlp({.hidden = {16, 12}}, kImages, 1);
                         },
                         "sgd"},
                    Case{"Resnet", [] { return make_resnet({.depth = 8}, kImages, 1); }, "sgd"},
                    Case{"ResnetBf16",
                         [] { return make_resnet({.depth = 8}, kImages, 1); },
                         "sgd",
                         {.precision = Precision::kBf16}},
                    Case{"Gpt",
                         [] { return make_gpt({.layers = 2, .width = 16, .heads = 2}, kText, 1); },
                         "adamw",
                         {},
                         true}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::train
