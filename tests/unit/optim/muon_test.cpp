#include "gallop/optim/muon.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::optim {
namespace {

at::Tensor numbers(at::IntArrayRef shape, double scale) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(1, count + 1, at::TensorOptions(c10::kFloat))
      .square()
      .mul(scale)
      .sin()
      .view(shape);
}

NamedTensors parameters_of(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
  NamedTensors parameters;
  for (const auto& [name, shape] : shapes) {
    parameters.push_back({name, at::zeros(shape)});
    parameters.back().tensor.mutable_grad() = numbers(shape, 0.3);
  }
  return parameters;
}

at::Tensor lr(double value) { return at::scalar_tensor(value, at::TensorOptions(c10::kFloat)); }

// Starting from 0 with a rate of 1, a parameter becomes the negative update.
TEST(Muon, UpdatesAreNearlyOrthogonal) {
  for (const char* precision : {"bf16", "fp32"}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{8, 20}, {20, 8}, {16, 16}, {6, 4, 3, 3}}) {
      const NamedTensors parameters = parameters_of({{"w", shape}});
      make_muon({.ns_precision = precision}, parameters)->step(lr(1));
      const at::Tensor matrix = parameters[0].tensor.flatten(1);
      const double scale = std::sqrt(
          std::max(1.0, static_cast<double>(matrix.size(0)) / static_cast<double>(matrix.size(1))));
      const at::Tensor values = at::linalg_svdvals(matrix.to(c10::kDouble)) / scale;
      EXPECT_GT(values.min().item<double>(), 0.4);
      EXPECT_LT(values.max().item<double>(), 1.3);
    }
  }
}

TEST(Muon, LeavesAdaptersBiasesEmbeddingsAndTheHeadOfTabmToTheOther) {
  // The head of four members with three classes.
  const auto optimizer = make_muon({}, parameters_of({{"head_weight", {4, 8, 3}},
                                                      {"head_bias", {4, 1, 3}},
                                                      {"input.categories_0", {5, 2}},
                                                      {"input.numbers_weight", {4, 6}},
                                                      {"layers.0.weight", {8, 10}},
                                                      {"layers.0.r", {4, 10}},
                                                      {"layers.0.s", {4, 8}},
                                                      {"layers.0.bias", {4, 8}},
                                                      {"layers.1.weight", {8, 8}},
                                                      {"layers.1.r", {4, 8}},
                                                      {"layers.1.s", {4, 8}},
                                                      {"layers.1.bias", {4, 8}}}));
  std::vector<std::string> muons;
  for (const auto& [name, tensor] : optimizer->state()) {
    if (name.starts_with("momentum.")) muons.push_back(name);
  }
  EXPECT_EQ(muons,
            (std::vector<std::string>{"momentum.layers.0.weight", "momentum.layers.1.weight"}));
}

// The iteration of Jordan's post in fp64.
TEST(Muon, FollowsItsFormula) {
  const NamedTensors parameters = parameters_of({{"w", {12, 5}}});
  const auto optimizer = make_muon({.momentum = 0.9,
                                    .ns_precision = "fp32",
                                    .adjust_lr_fn = "match_rms_adamw",
                                    .weight_decay = 0.1},
                                   parameters);
  at::Tensor p = at::zeros({12, 5}, at::kDouble), m = p.clone();
  for (int step = 1; step <= 20; ++step) {
    const at::Tensor gradient = numbers({12, 5}, 0.1 * step);
    parameters[0].tensor.mutable_grad() = gradient;
    optimizer->step(lr(0.02));
    const at::Tensor g = gradient.to(at::kDouble);
    m = 0.9 * m + 0.1 * g;
    const at::Tensor u = 0.9 * m + 0.1 * g;
    at::Tensor x = u.t() / u.norm();
    for (int i = 0; i < 5; ++i) {
      const at::Tensor a = x.mm(x.t());
      x = 3.4445 * x + (-4.775 * a + 2.0315 * a.mm(a)).mm(x);
    }
    const double rate = lr(0.02).item<float>();
    p = p * (1 - rate * 0.1) - rate * 0.2 * std::sqrt(12.0) * x.t();
  }
  EXPECT_LT((parameters[0].tensor - p).abs().max().item<double>(), 3e-5);
}

TEST(Muon, DelegatesVectorsEmbeddingsAndOutputs) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {
      {"transformer.wte.weight", {6, 4}},
      {"transformer.h.0.attn.c_attn.weight", {12, 4}},
      {"transformer.h.0.attn.c_attn.bias", {12}},
      {"lm_head.weight", {6, 4}}};
  for (const char* other : {"adamw", "sgd"}) {
    const NamedTensors parameters = parameters_of(shapes);
    const auto optimizer = make_muon({.other_optimizer = other, .other_lr = 0.01}, parameters);
    const NamedTensors state = optimizer->state();
    EXPECT_EQ(state[0].name, "momentum.transformer.h.0.attn.c_attn.weight");
    const std::string first = std::string(other) == "sgd" ? "other.momentum" : "other.exp_avg";
    EXPECT_EQ(state[1].name, first + ".transformer.wte.weight");
    EXPECT_EQ(state[2].name, first + ".transformer.h.0.attn.c_attn.bias");
    optimizer->step(lr(0.02));
    if (std::string(other) == "adamw") {
      // Its first step is its rate, which the schedule has not changed.
      EXPECT_NEAR(parameters[0].tensor.abs().max().item<float>(), 0.01, 1e-6);
    }
  }
  const NamedTensors parameters = parameters_of(shapes);
  EXPECT_EQ(make_muon({.matrices = {"lm_head.*"}}, parameters)->state()[1].name,
            "momentum.lm_head.weight");
}

std::string error_of(const MuonConfig& config, const NamedTensors& parameters) {
  try {
    make_muon(config, parameters);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Muon, RejectsVectorsAndPatternsWithoutAMatch) {
  const NamedTensors parameters = parameters_of({{"fc1.weight", {4, 4}}, {"fc1.bias", {4}}});
  EXPECT_NE(error_of({.matrices = {"fc1.b*"}}, parameters).find("'fc1.bias' by 'fc1.b*'"),
            std::string::npos);
  EXPECT_NE(error_of({.matrices = {"fc2.*"}}, parameters).find("'fc2.*' in matrices matches no"),
            std::string::npos);
  EXPECT_NE(error_of({.others = {"*"}}, parameters).find("the model has no matrix for Muon"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::optim
