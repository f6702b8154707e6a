// Steps whose layers are divided among processes next to those of one process: losses, norms,
// weights and states within rounding, and what all processes have with the same bits.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/model/frozen.h"
#include "gallop/model/gpt.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"
#include "unit/base/error_of.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/near_ddp.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

// 2, 3 and 4 processes divide the heads.
constexpr int64_t kHeads = 12, kWidth = 48;

std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = kWidth, .heads = kHeads}, kText, 1);
}
std::unique_ptr<model::Model> gpt_with_dropout() {
  return make_gpt(
      {.layers = 2, .width = kWidth, .heads = kHeads, .dropout = 0.1, .stochastic_depth = 0.2},
      kText, 1);
}
std::unique_ptr<model::Model> llama() {
  return make_gpt({.layers = 2,
                   .width = 72,
                   .heads = kHeads,
                   .bias = false,
                   .tied = false,
                   .activation = "swiglu",
                   .positions = "rotary",
                   .norm = "rms"},
                  kText, 1);
}
// 5 tokens, which no number of processes divides.
std::unique_ptr<model::Model> vit() {
  return make_vit({.patch = 4, .width = kWidth, .depth = 2, .heads = kHeads}, kImages, 1);
}
std::unique_ptr<model::Model> vit_with_dropout() {
  return make_vit({.patch = 4,
                   .width = kWidth,
                   .depth = 2,
                   .heads = kHeads,
                   .dropout = 0.1,
                   .stochastic_depth = 0.2,
                   .pool = "mean"},
                  kImages, 1);
}

std::unique_ptr<model::Model> recomputed(std::unique_ptr<model::Model> model) {
  model->recompute(std::vector<bool>(static_cast<size_t>(model->blocks()), true));
  return model;
}

const std::vector<std::string> kTensor = {
    "tensor tensor_parallel_degree={}", "tensor sequence_parallel=true tensor_parallel_degree={}"};

class Tensor : public testing::TestWithParam<Case> {};
class TensorOptions : public testing::TestWithParam<Case> {};
class CompiledTensor : public testing::TestWithParam<Case> {};
class CompiledTensorInMoreWays : public testing::TestWithParam<Case> {};
class TensorInMoreWays : public testing::TestWithParam<Case> {};

TEST_P(Tensor, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kTensor, {{2}}, 6, kFp64);
  expect_near_ddp(GetParam(), kTensor, {{3}}, 4, kFp32);
}
TEST_P(Tensor, IsNearOneProcessInReplicas) {
  expect_near_ddp(GetParam(), kTensor, {{.size = 4, .degree = 2}}, 4, kFp64);
}
TEST_P(TensorOptions, AreNearOneProcess) { expect_near_ddp(GetParam(), kTensor, {{2}}, 4, kFp32); }
// Replicas draw other numbers than one process, but those of ddp.
TEST_P(TensorOptions, AreNearDdpInReplicas) {
  expect_near_ddp(GetParam(), kTensor, {{.size = 4, .degree = 2, .reference = 2}}, 4, kFp32);
}
TEST_P(CompiledTensor, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kTensor, {{2}}, 4, kFp64);
  expect_near_ddp(GetParam(), kTensor, {{.size = 4, .degree = 2, .reference = 2}}, 4, kFp32);
}
TEST_P(CompiledTensorInMoreWays, IsNearDdp) {
  expect_near_ddp(GetParam(), kTensor, {{2}, {3}, {.size = 4, .degree = 2, .reference = 2}}, 4,
                  kFp32);
}
TEST_P(TensorInMoreWays, IsNearOneProcess) {
  const std::vector<Layout> layouts = {
      {2}, {3}, {4}, {.size = 4, .degree = 2}, {.size = 6, .degree = 2}, {.size = 6, .degree = 3}};
  expect_near_ddp(GetParam(), kTensor, layouts, 20, kFp64);
  expect_near_ddp(GetParam(), kTensor, layouts, 20, kFp32);
}

// The gradient of a bias of keys is 0 but for rounding, which a small eps would magnify.
constexpr const char* kAdamw = "adamw eps=1e-4 weight_decay=0.1";
constexpr const char* kSgd = "sgd momentum=0.9";

std::vector<Case> models() {
  return {{"GptAdamw", gpt, kAdamw, {.clip_grad_norm = 0.5}, true},
          {"LlamaAdamw", llama, kAdamw, {.gradient_accumulation = 3}, true},
          {"VitSgd", vit, kSgd, {.clip_grad_norm = 0.5}}};
}

std::vector<Case> more_models() {
  std::vector<Case> all;
  for (const auto& [name, make, is_text] :
       {std::tuple("Gpt", &gpt, true), {"Llama", &llama, true}, {"Vit", &vit, false}}) {
    for (const auto& [rule, optimizer] : {std::pair("Adamw", kAdamw), {"Sgd", kSgd}}) {
      all.push_back({std::string(name) + rule, make, optimizer, {.clip_grad_norm = 0.5}, is_text});
    }
  }
  return all;
}

Case with_ema() { return {"Ema", gpt, kAdamw, {}, true, true, "[{ema: {decay: 0.9}}]"}; }

std::vector<Case> options() {
  return {{"GptDropout", gpt_with_dropout, kSgd, {.gradient_accumulation = 2}, true},
          {"VitDropout", vit_with_dropout, kAdamw, {.gradient_accumulation = 2}},
          {"RecomputedGpt", [] { return recomputed(gpt_with_dropout()); }, kSgd, {}, true},
          {"Smoothing", llama, kSgd, {.loss = cross_entropy_loss(0.1)}, true},
          with_ema(),
          {"Lookahead", gpt, kSgd, {}, true, true, "[lookahead]"},
          {"FrozenEmbedding",
           [] {
             return freeze(gpt(), {"transformer.wte.*", "*.ln_1.*"});
           },
           kSgd,
           {},
           true},
          {"ClipValue", vit, kAdamw, {.clip_value = 0.01}},
          {"Sam", vit, kSgd, {.sam = 0.05}},
          {"SkipNonfinite", gpt, kSgd, {.skip_nonfinite = true}, true}};
}

std::vector<Case> compiled_models() {
  std::vector<Case> all = models();
  all.push_back(with_ema());
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

TEST(TensorRejects, WhatItCannotTrain) {
  const auto one = [](const MakeModel& make, const std::string& optimizer, const StepConfig& config,
                      bool is_text = true) {
    return error_of([&] {
      Case tested{"Case", make, optimizer, config, is_text};
      tested.strategy = "tensor";
      parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(tested, {}, &two); });
    });
  };
  EXPECT_EQ(one(gpt, kAdamw, {}), "");
  const auto resnet = [] { return make_resnet({.depth = 20}, kImages, 1); };
  EXPECT_EQ(
      one(resnet, "sgd", {}, false),
      "parallel.name=tensor divides attention heads and feed-forward layers among processes, which "
      "only 'gpt', 'vit' and exported programs support; use one of them, or parallel.name=zero-2");
  const auto five_heads = [] { return make_gpt({.layers = 1, .width = 40, .heads = 5}, kText, 1); };
  EXPECT_EQ(one(five_heads, "sgd", {}),
            "parallel.name=tensor: the 5 attention heads of the model cannot be divided evenly "
            "among 2 processes; divide them among 5 processes (parallel.tensor_parallel_degree), "
            "or choose model.heads so that there are 4 or 6");
  for (const char* optimizer : {"muon", "lamb", "lars", "adafactor"}) {
    EXPECT_TRUE(
        one(gpt, optimizer, {})
            .ends_with(
                "this optimizer updates it only as a whole, as muon, lamb, lars and adafactor do; "
                "use an elementwise one, such as adamw, or parallel.name=zero-1"))
        << optimizer;
  }
  EXPECT_TRUE(one(gpt, "adamw state_bits=8", {}).ends_with("set optimizer.state_bits to 32"));
  EXPECT_TRUE(one(gpt, "sgd", {.clip_adaptive = 0.01})
                  .starts_with("train.clip_adaptive with parallel.name=tensor"));
}

// A process gets parts from its own replica, and all replicas get them from rank 0.
TEST(TensorState, LoadsIntoReplicas) {
  Case tested{"Gpt", gpt, "adamw", {}, true};
  tested.strategy = "tensor tensor_parallel_degree=2";
  const auto [input, target] = batch_of(tested, 4);
  run_on_one_core_each(4, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives), other(tested, std::nullopt, &collectives);
    trainee.step->run(part_of(labeled(input, target), trainee.strategy.get()), 0, 0.01, false, {},
                      {.rows = 4});
    const auto state = trainee.optimizer->logical_state();
    const NamedTensors whole = gathered(collectives, state), own = gathered(collectives, state, 4);
    if (collectives.rank() == 0) expect_equal(own, whole);
    scatter_from_rank0(collectives, whole, other.optimizer->logical_state());
    expect_equal(other.optimizer->state(), trainee.optimizer->state());
    parallel::any_of(collectives, false);
  });
}

TEST(TensorMemory, IsDivided) {
  Case tested{"Gpt", gpt, "adamw", {}, true};
  tested.strategy = "tensor";
  run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives);
    int64_t replicated = 0, whole = 0;
    for (const LogicalTensor& one : trainee.strategy->parameters_in_parts()) {
      whole += one.whole.numel();
      if (one.is_replicated()) replicated += one.whole.numel();
    }
    const int64_t here = bytes_of(trainee.model->parameters()) / 4;
    // The vocabulary of 11 has unequal parts.
    EXPECT_NEAR(static_cast<double>(here), static_cast<double>(whole + replicated) / 2, kWidth);
    EXPECT_LT(replicated, whole / 10);
    EXPECT_NEAR(static_cast<double>(bytes_of(trainee.optimizer->state())), 8.0 * here, 200);
  });
}

INSTANTIATE_TEST_SUITE_P(Usual, Tensor, testing::ValuesIn(models()), name_of);
INSTANTIATE_TEST_SUITE_P(Usual, CompiledTensor, testing::ValuesIn(compiled(compiled_models())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Long, CompiledTensorInMoreWays, testing::ValuesIn(compiled(options())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Long, TensorInMoreWays, testing::ValuesIn(more_models()), name_of);
INSTANTIATE_TEST_SUITE_P(Usual, TensorOptions, testing::ValuesIn(options()), name_of);

}  // namespace
}  // namespace gallop::train
