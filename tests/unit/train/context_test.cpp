// Steps whose tokens are divided among processes next to those of one process.
#include <string>
#include <vector>

#include <ATen/ops/allclose.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/model/frozen.h"
#include "gallop/model/gpt.h"
#include "gallop/model/vit.h"
#include "unit/base/error_of.h"
#include "unit/train/near_ddp.h"

namespace gallop::train {
namespace {

// 2, 3 and 4 processes divide the heads; 3 have unequal parts of the 8 tokens.
constexpr int64_t kHeads = 12, kWidth = 48;

const std::string kUlysses = "context context_parallel_degree={}",
                  kRing = "context context_parallel_method=ring context_parallel_degree={}";
const std::vector<std::string> kContext = {kUlysses, kRing};

std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = kWidth, .heads = kHeads}, kText, 1);
}
std::unique_ptr<model::Model> gpt_with_dropout() {
  return make_gpt(
      {.layers = 2, .width = kWidth, .heads = kHeads, .dropout = 0.1, .stochastic_depth = 0.2},
      kText, 1);
}
std::unique_ptr<model::Model> recomputed_gpt() {
  auto model = gpt_with_dropout();
  model->recompute(std::vector<bool>(static_cast<size_t>(model->blocks()), true));
  return model;
}
std::unique_ptr<model::Model> llama_of_heads(int64_t heads) {
  return make_gpt({.layers = 2,
                   .width = 6 * heads,
                   .heads = heads,
                   .bias = false,
                   .tied = false,
                   .activation = "swiglu",
                   .positions = "rotary",
                   .norm = "rms"},
                  kText, 1);
}
std::unique_ptr<model::Model> llama() { return llama_of_heads(kHeads); }
// 2, 3 and 4 processes do not divide the heads.
std::unique_ptr<model::Model> llama_of_5_heads() { return llama_of_heads(5); }

constexpr const char* kAdamw = "adamw eps=1e-4 weight_decay=0.1";
constexpr const char* kSgd = "sgd momentum=0.9";

std::vector<Case> exact_cases() {
  return {{"Gpt", gpt, kAdamw, {.clip_grad_norm = 0.5}, true},
          {"Llama", llama, kAdamw, {.gradient_accumulation = 3}, true},
          {"Smoothing", llama, kSgd, {.loss = cross_entropy_loss(0.1)}, true},
          {"Ema", gpt, kAdamw, {}, true, true, "[{ema: {decay: 0.9}}]"},
          {"Lamb", gpt, "lamb", {}, true},
          {"Sam", gpt, kSgd, {.sam = 0.05}, true}};
}

// With those that draw the numbers of one process, or have parameters that are not trained, in fp32
// only.
std::vector<Case> cases() {
  std::vector<Case> all = exact_cases();
  all.push_back({"Dropout", gpt_with_dropout, kSgd, {.gradient_accumulation = 2}, true});
  all.push_back({"Recomputed", recomputed_gpt, kSgd, {}, true});
  all.push_back({"Frozen", [] { return freeze(gpt(), {"transformer.wte.*"}); }, kSgd, {}, true});
  return all;
}

std::vector<Case> compiled_cases() {
  return {{"Gpt", gpt, kAdamw, {.clip_grad_norm = 0.5}, true},
          {"Llama", llama, kAdamw, {.gradient_accumulation = 3}, true}};
}

class Context : public testing::TestWithParam<Case> {};
class CompiledContextInMoreWays : public testing::TestWithParam<Case> {};
class CompiledContext : public testing::TestWithParam<Case> {};
class ContextInFp32 : public testing::TestWithParam<Case> {};
class ContextInFp64 : public testing::TestWithParam<Case> {};

// Replicas draw other numbers than one process, but those of ddp.
TEST_P(Context, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kContext, {{2}, {.size = 4, .degree = 2, .reference = 2}}, 4, kFp32);
}
TEST_P(CompiledContext, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kContext, {{2}}, 4, kFp64);
  expect_near_ddp(GetParam(), kContext, {{.size = 4, .degree = 2, .reference = 2}}, 4, kFp32);
}
TEST_P(CompiledContextInMoreWays, IsNearDdp) {
  expect_near_ddp(GetParam(), kContext, {{2}, {3}, {.size = 4, .degree = 2, .reference = 2}}, 4,
                  kFp32);
}
const std::vector<Layout> kLayouts = {{2},
                                      {3},
                                      {4},
                                      {.size = 4, .degree = 2, .reference = 2},
                                      {.size = 6, .degree = 3, .reference = 2}};

TEST_P(ContextInFp32, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kContext, kLayouts, 20, kFp32);
}
TEST_P(ContextInFp64, IsNearOneProcess) {
  expect_near_ddp(GetParam(), kContext, kLayouts, 20, kFp64);
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

TEST(ContextIsExact, In20StepsOfUnequalParts) {
  expect_near_ddp({"Gpt", gpt, kAdamw, {.clip_grad_norm = 0.5}, true}, kContext, {{3}}, 20, kFp64);
}

// 2 and 4 processes have equal chunks of the 8 tokens; with 3, chunks have 1 or 2, and with 5, some
// are empty.
struct RingCase {
  std::vector<Layout> layouts;
  int steps;
};
class RingIsExact : public testing::TestWithParam<RingCase> {};

TEST_P(RingIsExact, WithAnyNumberOfHeadsAndTokens) {
  const Case tested{
      "Llama", llama_of_5_heads, kAdamw, {.gradient_accumulation = 2, .clip_grad_norm = 0.5}, true};
  expect_near_ddp(tested, {kRing}, GetParam().layouts, GetParam().steps, kFp64);
  expect_near_ddp(tested, {kRing}, {{3}}, GetParam().steps, kFp32);
}
INSTANTIATE_TEST_SUITE_P(Usual, RingIsExact, testing::Values(RingCase{{{3}, {5}}, 10}));
INSTANTIATE_TEST_SUITE_P(Long, RingIsExact, testing::Values(RingCase{{{2}, {3}, {4}, {5}}, 20}));

// Every process has some of the positions at both ends of the texts.
TEST(ContextLogits, AreThoseOfOneProcess) {
  for (const std::string& strategy : kContext) {
    Case tested{"Gpt", gpt, kSgd, {}, true};
    tested.strategy = fmt::format(fmt::runtime(strategy), 0);
    const at::Tensor input = batch_of(tested, 2).first;
    const at::Tensor wanted = gpt()->forward(input);
    parallel::run_ranks_together(3, [&](parallel::Collectives& three) {
      Trainee trainee(tested, {}, &three);
      const at::Tensor logits = trainee.model->forward(input);
      EXPECT_TRUE(at::allclose(logits, wanted, 1e-5, 1e-6)) << strategy;
    });
  }
}

TEST(ContextRejects, WhatItCannotTrain) {
  const auto one = [](const MakeModel& make, const StepConfig& config, bool is_text = true) {
    return error_of([&] {
      Case tested{"Case", make, "sgd", config, is_text};
      tested.strategy = "context";
      parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(tested, {}, &two); });
    });
  };
  EXPECT_EQ(one(gpt, {}), "");
  EXPECT_EQ(
      one([] { return make_vit({.patch = 4, .width = 48, .depth = 1, .heads = 2}, kImages, 1); },
          {}, false),
      "parallel.name=context divides the tokens of sequences among processes, which only the model "
      "'gpt' supports; use it, or parallel.name=ddp or zero-3");
  EXPECT_EQ(one([] { return make_gpt({.layers = 1, .width = 40, .heads = 5}, kText, 1); }, {}),
            "parallel.name=context: the 5 attention heads of the model cannot be divided evenly "
            "among 2 processes; divide them among 5 processes (parallel.context_parallel_degree), "
            "or choose model.heads so that there are 4 or 6, or set "
            "parallel.context_parallel_method=ring");
  EXPECT_TRUE(one([] { return gpt_of_experts({.num_experts = 2}); }, {})
                  .starts_with("parallel.name=context does not divide the tokens of experts"));
}

INSTANTIATE_TEST_SUITE_P(Usual, Context, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Usual, CompiledContext, testing::ValuesIn(compiled(compiled_cases())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Long, CompiledContextInMoreWays, testing::ValuesIn(compiled(cases())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Long, ContextInFp32, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, ContextInFp64, testing::ValuesIn(exact_cases()), name_of);

}  // namespace
}  // namespace gallop::train
