// Steps whose experts are divided among processes next to those of ddp in as many.
#include "gallop/model/functional/expert_parallel.h"

#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "gallop/model/frozen.h"
#include "gallop/model/vit.h"
#include "gallop/parallel/collectives_group.h"
#include "unit/base/error_of.h"
#include "unit/train/near_ddp.h"

namespace gallop::train {
namespace {

using model::functional::ExpertRoute;

const std::vector<std::string> kExpert = {"expert expert_parallel_degree={}"};

constexpr const char* kAdamw = "adamw eps=1e-4 weight_decay=0.1";
constexpr const char* kSgd = "sgd momentum=0.9";

Case with_experts(const std::string& name, const model::ExpertsConfig& experts,
                  const std::string& optimizer, const StepConfig& config = {}, double dropout = 0) {
  return {.name = name,
          .make_model = [experts, dropout] { return gpt_of_experts(experts, dropout); },
          .optimizer = optimizer,
          .config = config,
          .text = true};
}

// 2, 3 and 4 processes divide 12 experts.
std::vector<Case> exact_cases() {
  std::vector<Case> all = {
      with_experts("Balanced", {.num_experts = 12, .aux_loss_coef = 0.1, .z_loss_coef = 0.01},
                   kAdamw, {.clip_grad_norm = 0.5}),
      with_experts("AuxLoss", {.num_experts = 12, .load_balancing = "aux-loss"}, kSgd,
                   {.clip_adaptive = 0.1}),
      with_experts("Biased", {.num_experts = 12, .top_k = 1, .load_balancing = "bias"}, kSgd,
                   {.gradient_accumulation = 3}),
      with_experts("Dropping", {.num_experts = 12, .top_k = 3, .capacity_factor = 0.7}, kSgd),
      with_experts("Sam", {.num_experts = 12}, kSgd, {.sam = 0.05})};
  Case ema = with_experts("Ema", {.num_experts = 12}, kAdamw);
  ema.wrappers = "[{ema: {decay: 0.9}}]";
  all.push_back(ema);
  Case llama = with_experts("Llama", {}, kAdamw, {.loss = cross_entropy_loss(0.1)});
  llama.make_model = [] {
    return make_gpt({.layers = 2,
                     .width = 16,
                     .heads = 2,
                     .stochastic_depth = 0.2,
                     .bias = false,
                     .tied = false,
                     .activation = "swiglu",
                     .positions = "rotary",
                     .norm = "rms",
                     .experts = {.num_experts = 12}},
                    kText, 1);
  };
  all.push_back(llama);
  Case frozen = with_experts("Frozen", {.num_experts = 12}, kSgd);
  frozen.make_model = [make = frozen.make_model] {
    return freeze(make(), {"transformer.wte.*", "transformer.h.0.mlp.experts.*"});
  };
  all.push_back(frozen);
  return all;
}

// With one that draws numbers from the generator, which all ranks of a test share in fp64.
std::vector<Case> cases() {
  std::vector<Case> all = exact_cases();
  Case recomputed = with_experts("Recomputed", {.num_experts = 12}, kSgd, {}, /*dropout=*/0.1);
  recomputed.make_model = [make = recomputed.make_model] {
    auto model = make();
    model->recompute({true, true, true});
    return model;
  };
  all.push_back(recomputed);
  return all;
}

const std::vector<Layout> kFew = {{.size = 2, .reference = 2},
                                  {.size = 4, .degree = 2, .reference = 4}};
const std::vector<Layout> kAll = {{.size = 2, .reference = 2},
                                  {.size = 3, .reference = 3},
                                  {.size = 4, .reference = 4},
                                  {.size = 4, .degree = 2, .reference = 4},
                                  {.size = 6, .degree = 3, .reference = 6}};

class ExpertParallel : public testing::TestWithParam<Case> {};
class ExpertParallelInFp64 : public testing::TestWithParam<Case> {};

TEST_P(ExpertParallel, IsNearDdp) { expect_near_ddp(GetParam(), kExpert, kFew, 4, kFp32); }
TEST_P(ExpertParallelInFp64, IsNearDdp) { expect_near_ddp(GetParam(), kExpert, kAll, 20, kFp64); }

TEST(ExpertParallelIsExact, In20Steps) {
  expect_near_ddp(with_experts("Dropping", {.num_experts = 6, .capacity_factor = 0.7}, kAdamw,
                               {.clip_grad_norm = 0.5}),
                  kExpert, {{.size = 3, .reference = 3}}, 20, kFp64);
}

// Rank r has r tokens of two copies, so that rank 0 has none, of an expert that is chosen by the
// token's number among those of all. Each expert adds its number to what it gets.
TEST(ExpertRoute, BringsCopiesToTheirExpertsAndBack) {
  for (const int64_t capacity : {0, 1}) {
    parallel::run_ranks(3, [&](parallel::Collectives& collectives) {
      const parallel::CollectivesGroup group(collectives);
      const int64_t rank = group.rank(), experts = 6, first = rank * (rank - 1) / 2;
      const at::Tensor tokens = at::arange(first, first + rank, at::kLong);
      const at::Tensor chosen =
          at::stack({tokens.remainder(experts), tokens.add(4).remainder(experts)}, 1);
      const auto order = model::functional::order_by_expert(chosen, experts, capacity);
      const ExpertRoute route = route_to_experts(order, group);
      const at::Tensor rows =
          model::functional::dispatch(tokens.to(at::kDouble).unsqueeze(1).expand({rank, 4}), order);
      const at::Tensor here = send_to_experts(rows, route, group);
      ASSERT_EQ(here.size(0), route.here.ranges[-1][1].item<int64_t>());
      const at::Tensor computed = here.clone();
      for (int64_t i = 0; i < 2; ++i) {
        const auto begin = route.here.ranges[i][0].item<int64_t>();
        const auto end = route.here.ranges[i][1].item<int64_t>();
        computed.slice(0, begin, end).add_(static_cast<double>(100 * (2 * rank + i)));
        // In the order of the tokens of all processes.
        EXPECT_TRUE(at::equal(here.slice(0, begin, end).select(1, 0),
                              std::get<0>(here.slice(0, begin, end).select(1, 0).sort())));
      }
      const at::Tensor back = send_from_experts(computed, route, group);
      const at::Tensor is_computed = model::functional::computed_copies(order, chosen);
      const at::Tensor got =
          back.select(1, 3).index_select(0, order.rows.flatten()).view({rank, 2});
      EXPECT_TRUE(at::equal(got, tokens.unsqueeze(1).add(chosen.mul(100)).mul(is_computed)))
          << got << chosen;
    });
  }
}

TEST(ExpertParallelRejects, WhatItCannotTrain) {
  const auto one = [](const Case& tested) {
    return error_of([&] {
      Case divided = tested;
      divided.strategy = "expert";
      parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(divided, {}, &two); });
    });
  };
  EXPECT_EQ(one(with_experts("Case", {.num_experts = 4}, "sgd")), "");
  EXPECT_EQ(one(with_experts("Case", {.num_experts = 5}, "sgd")),
            "parallel.name=expert: the 5 experts of the model cannot be divided evenly among 2 "
            "processes; divide them among 5 processes (parallel.expert_parallel_degree), or choose "
            "model.num_experts so that there are 4 or 6");
  EXPECT_EQ(one(with_experts("Case", {}, "sgd")),
            "parallel.name=expert divides experts among processes, and model.num_experts is 0; set "
            "it, or use another strategy");
  EXPECT_EQ(
      one({"Case",
           [] { return make_vit({.patch = 4, .width = 48, .depth = 1, .heads = 2}, kImages, 1); },
           "sgd",
           {}}),
      "parallel.name=expert divides experts among processes, and only the model 'gpt' with "
      "model.num_experts has experts; use it, or another strategy");
  EXPECT_TRUE(one(with_experts("Case", {.num_experts = 4}, "lamb"))
                  .starts_with("parallel.name=expert divides "
                               "'transformer.h.0.mlp.experts.c_fc.weight' among processes, and "
                               "this optimizer updates it only as a whole"));
  EXPECT_TRUE(one(with_experts("Case", {.num_experts = 4}, "adamw state_bits=8"))
                  .starts_with("parallel.name=expert: the optimizer's state "));
  EXPECT_TRUE(
      one(with_experts("Case", {.num_experts = 4}, "sgd", {.compile = compile::CompileConfig()}))
          .starts_with("train.compile with parallel.name=expert: steps whose experts are divided"));
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Usual, ExpertParallel, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, ExpertParallelInFp64, testing::ValuesIn(exact_cases()), name_of);

}  // namespace
}  // namespace gallop::train
