// Activation checkpointing: blocks whose activations are recomputed in the backward pass.
#include "gallop/model/functional/recompute.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/arena.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/train/loss.h"
#include "gallop/train/memory_use.h"
#include "gallop/train/recompute_choice.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

const std::vector<std::pair<std::string, MakeModel>>& networks() {
  static const std::vector<std::pair<std::string, MakeModel>> kNetworks = {
      {"Mlp",
       [] {
         return make_mlp({.hidden = {16, 16, 12}, .dropout = 0.2}, kImages, 1);
       }},
      {"Resnet", [] { return make_resnet({.depth = 8}, kImages, 1); }},
      {"Vit",
       [] {
         return make_vit({.patch = 4, .width = 12, .depth = 3, .heads = 2, .dropout = 0.1}, kImages,
                         1);
       }},
      {"Gpt",
       [] { return make_gpt({.layers = 3, .width = 16, .heads = 2, .dropout = 0.1}, kText, 1); }},
      {"GptExperts",
       [] {
         return gpt_of_experts({.num_experts = 4, .capacity_factor = 1, .z_loss_coef = 0.01}, 0.1);
       }},
      {"GptPlain",
       [] { return make_gpt({.layers = 3, .width = 16, .heads = 2, .dropout = 0}, kText, 1); }},
  };
  return kNetworks;
}

// Every model in every precision, with the options of a step, or in the slow ones one model.
Covering<Case> make_cases() {
  const std::vector<std::pair<std::string, StepConfig>> options = {
      {"Plain", {}},
      {"Accumulate", {.gradient_accumulation = 3}},
      {"Sam", {.sam = 0.05}},
      {"All",
       {.gradient_accumulation = 2,
        .clip_grad_norm = 0.5,
        .loss = cross_entropy_loss(0.2),
        .skip_nonfinite = true}}};
  const std::vector<std::pair<std::string, Precision>> precisions = {{"Fp32", Precision::kFp32},
                                                                     {"Bf16", Precision::kBf16},
                                                                     {"Fp16", Precision::kFp16},
                                                                     {"Fp8", Precision::kFp8}};
  std::vector<Combined<Case>> cases;
  for (const auto& [network_name, make] : networks()) {
    for (const auto& [precision_name, precision] : precisions) {
      for (auto [option_name, config] : options) {
        config.precision = precision;
        // LibTorch emulates these on CPUs: the first network has them with every option.
        const bool is_slow = precision == Precision::kFp16 || precision == Precision::kFp8;
        std::vector<std::string> combinations;
        if (!is_slow) {
          combinations = {network_name + "+" + precision_name, network_name + "+" + option_name};
        } else if (network_name == "Mlp") {
          combinations = {precision_name + "+" + option_name};
        }
        cases.push_back({{.name = network_name + "_" + precision_name + "_" + option_name,
                          .make_model = make,
                          .optimizer = "adamw",
                          .config = config,
                          .text = network_name.starts_with("Gpt")},
                         std::move(combinations)});
      }
    }
  }
  return cover(cases);
}

const Covering<Case>& all_cases() {
  static const Covering<Case> kCases = make_cases();
  return kCases;
}

std::vector<Case> joined(std::vector<Case> cases, const std::vector<Case>& others) {
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

class RecomputedStep : public testing::TestWithParam<Case> {};
class RecomputedStepInMoreWays : public testing::TestWithParam<Case> {};

constexpr int64_t kSteps = 4;

std::vector<StepResult> train(const Case& tested, Trainee& trainee) {
  std::vector<StepResult> results;
  for (int64_t step = 0; step < kSteps; ++step) {
    seed_step(5, step, at::kCPU);
    const auto [input, target] = batch_of(tested, step + 1 == kSteps ? 4 : 7);
    results.push_back(trainee.step->run(labeled(input, target), step, 0.01, step % 2 == 0));
  }
  return results;
}

void expect_same_bits(const Case& tested, const std::optional<compile::CompileConfig>& compile) {
  Trainee kept(tested, compile);
  ASSERT_GE(kept.model->blocks(), 3);
  const std::vector<StepResult> wanted_results = train(tested, kept);
  const NamedTensors wanted = kept.everything();
  for (const int64_t every : {1, 2}) {
    Trainee recomputed(tested, compile);
    recomputed.model->recompute(every_block(recomputed.model->blocks(), every));
    const std::vector<StepResult> results = train(tested, recomputed);
    for (size_t step = 0; step < results.size(); ++step) {
      const auto& [got, expected] = std::tie(results[step], wanted_results[step]);
      EXPECT_EQ(got.tally.loss_sum, expected.tally.loss_sum) << "step " << step;
      // In fp16 some norms overflow.
      const bool same = got.gradient_norm == expected.gradient_norm ||
                        (std::isnan(got.gradient_norm) && std::isnan(expected.gradient_norm));
      EXPECT_TRUE(same) << "step " << step;
    }
    const NamedTensors got = recomputed.everything();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(at::equal(got[i].tensor, wanted[i].tensor)) << wanted[i].name;
    }
    if (!compile) continue;
    EXPECT_EQ(recomputed.step->compile_report()->replayed, kSteps);
  }
}

TEST_P(RecomputedStep, HasTheBitsOfOneThatKeepsEverything) {
  expect_same_bits(GetParam(), std::nullopt);
}

TEST_P(RecomputedStep, HasThemCompiledByEveryPass) {
  expect_same_bits(GetParam(), compile::CompileConfig{});
}

TEST_P(RecomputedStepInMoreWays, HasThemCompiledWithoutRoundingPasses) {
  expect_same_bits(GetParam(),
                   compile::CompileConfig{.passes_off = compile::names_of_rounding_passes()});
}

INSTANTIATE_TEST_SUITE_P(Usual, RecomputedStep, testing::ValuesIn(all_cases().usual),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, RecomputedStep, testing::ValuesIn(all_cases().rest),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, RecomputedStepInMoreWays,
                         testing::ValuesIn(joined(all_cases().usual, all_cases().rest)),
                         [](const auto& tested) { return tested.param.name; });

// LibTorch's own dropout, which draws from a generator.
TEST(Recompute, DrawsTheSameRandomNumbersOfLibTorchsGeneratorsAgain) {
  const auto part = [](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{at::dropout(in[0], 0.5, true).mul(in[0])};
  };
  const at::Tensor x = at::randn({64, 8});
  const auto gradient = [&](bool recomputed) {
    seed_step(1, 1, at::kCPU);
    const at::Tensor leaf = x.clone().requires_grad_();
    const at::Tensor y =
        recomputed ? model::functional::recompute(part, {leaf}, {})[0] : part({leaf})[0];
    const at::Tensor more =
        at::dropout(y, 0.5, true);  // Continues after the random numbers of the slice.
    more.sum().backward();
    return std::pair(leaf.grad(), at::randn({3}));
  };
  const auto [wanted, next] = gradient(false);
  const auto [got, next_again] = gradient(true);
  EXPECT_TRUE(at::equal(got, wanted));
  EXPECT_TRUE(at::equal(next_again, next));
}

TEST(Recompute, IsRefusedWhereACompiledStepCouldNotDrawThemAgain) {
  const at::Tensor weight = at::randn({8}).requires_grad_();
  compile::CompiledFunction step(
      [&](const std::vector<at::Tensor>& in, int64_t) {
        const auto part = [](const std::vector<at::Tensor>& x) {
          return std::vector<at::Tensor>{at::dropout(x[0], 0.5, true)};
        };
        const at::Tensor x = in[0].mul(weight);
        return std::vector<at::Tensor>{model::functional::recompute(part, {x}, {})[0]};
      },
      {weight});
  EXPECT_THROW(step({at::randn({8})}), UsageError);
}

TEST(Recompute, GivesInputsAndParametersTheirGradientsAndOthersNone) {
  const at::Tensor x = at::randn({4, 3}), weight = at::randn({3}).requires_grad_(),
                   unused = at::randn({3}).requires_grad_();
  int64_t calls = 0;
  const auto part = [&](const std::vector<at::Tensor>& in) {
    calls += 1;
    const at::Tensor y = in[0].mul(weight);
    return std::vector<at::Tensor>{y, y, in[0].neg()};
  };
  {
    const at::NoGradGuard no_gradients;
    EXPECT_FALSE(model::functional::recompute(part, {x}, {weight, unused})[0].requires_grad());
  }
  EXPECT_EQ(calls, 1);
  const auto results = model::functional::recompute(part, {x}, {weight, unused});
  results[0].sum().add(results[1].sum().mul(2)).backward();
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(at::allclose(weight.grad(), x.sum(0).mul(3)));
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_FALSE(model::functional::is_recomputing());
}

// As the tied weights of an exported block.
TEST(Recompute, GivesAParameterThatIsListedTwiceItsGradientOnce) {
  const at::Tensor x = at::randn({4, 3}), weight = at::randn({3}).requires_grad_();
  const auto part = [&](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{in[0].mul(weight).mul(weight)};
  };
  model::functional::recompute(part, {x}, {weight, weight})[0].sum().backward();
  EXPECT_TRUE(at::allclose(weight.grad(), x.sum(0).mul(weight.detach()).mul(2)));
}

const model::Task kLongText{.kind = model::Task::Kind::kText, .classes = 50, .context = 128};
const model::Task kLargerImages{.channels = 3, .height = 32, .width = 32, .classes = 10};

struct Sized {
  std::unique_ptr<model::Model> model;
  at::Tensor input, target;
};

Sized large_gpt() {
  return {make_gpt({.layers = 4, .width = 128, .heads = 4, .dropout = 0.1}, kLongText, 1),
          at::randint(50, {24, 128}, at::kLong), at::randint(50, {24, 128}, at::kLong)};
}

Sized large_resnet() {
  Sized sized{make_resnet({.depth = 14}, kLargerImages, 1), at::randn({24, 3, 32, 32}),
              at::randint(10, {24}, at::kLong)};
  sized.model->to(at::kCPU, true);
  return sized;
}

int64_t plain_peak(const Sized& sized, const std::vector<bool>& blocks) {
  const auto optimizers = optim::built_in_optimizers();
  const auto optimizer =
      optimizers.build(config::Component(optimizers, "sgd"), sized.model->parameters());
  sized.model->recompute(blocks);
  TrainStep step(*sized.model, *optimizer, {});
  step.run(labeled(sized.input, sized.target), 0, 0.0, false);
  for (const auto& parameter : sized.model->parameters()) parameter.tensor.mutable_grad().reset();
  const MemoryUse use(at::kCPU);
  step.run(labeled(sized.input, sized.target), 1, 0.0, false);
  return use.peak_bytes();
}

// The peak bytes of temporaries, as the step compiler plans them after all passes.
int64_t compiled_peak(const Sized& sized, const std::vector<bool>& blocks) {
  sized.model->recompute(blocks);
  const at::Tensor seed_and_step = at::randint(9, {2}, at::kLong);
  const auto gradients = [&](const std::vector<at::Tensor>& in) {
    const model::functional::DropoutScope draws(in[2]);
    cross_entropy_sum(sized.model->forward_to_head(in[0]), in[1], 0, /*count_correct=*/false)
        .sum.backward();
    std::vector<at::Tensor> results;
    for (const auto& parameter : sized.model->parameters()) {
      results.push_back(std::exchange(parameter.tensor.mutable_grad(), at::Tensor()));
    }
    return results;
  };
  const std::vector<at::Tensor> arguments = {sized.input, sized.target, seed_and_step};
  compile::Recording recording = compile::retrace_until_stable(
      [&] { return compile::record(gradients, arguments, compile::Outcome::kNotWanted); });
  EXPECT_EQ(recording.refusal, "");
  compile::KernelCompiler compiler;
  compile::PassContext context{.compiler = compiler};
  compile::run_passes(recording.graph, {}, context);
  for (const auto& node : recording.graph.nodes) {
    EXPECT_NE(compile::name_of(node.op), "gallop::barrier");
  }
  return compile::plan_memory(recording.graph, compile::Arena::kMargin).bytes;
}

// The peak memory of a step as a fraction of the peak without checkpointing.
TEST(Recompute, SavesMemoryOfPlainAndOfCompiledSteps) {
  for (Sized (*make)() : {large_gpt, large_resnet}) {
    const Sized sized = make();
    const int64_t blocks = sized.model->blocks();
    const auto none = every_block(blocks, 0), half = every_block(blocks, 2),
               all = every_block(blocks, 1);
    const int64_t plain = plain_peak(sized, none), plain_half = plain_peak(sized, half),
                  plain_all = plain_peak(sized, all);
    const int64_t compiled = compiled_peak(sized, none), compiled_half = compiled_peak(sized, half),
                  compiled_all = compiled_peak(sized, all);
    RecordProperty("bytes" + std::to_string(blocks),
                   std::to_string(plain) + " " + std::to_string(plain_half) + " " +
                       std::to_string(plain_all) + " " + std::to_string(compiled) + " " +
                       std::to_string(compiled_half) + " " + std::to_string(compiled_all));
    EXPECT_LT(plain_half, 0.85 * static_cast<double>(plain));
    EXPECT_LT(plain_all, 0.65 * static_cast<double>(plain));
    EXPECT_LT(compiled_half, 0.85 * static_cast<double>(compiled));
    EXPECT_LT(compiled_all, 0.65 * static_cast<double>(compiled));
  }
}

TEST(EveryBlock, TakesTheLastOfSoManyInARow) {
  EXPECT_EQ(every_block(5, 2), (std::vector<bool>{false, true, false, true, false}));
  EXPECT_EQ(every_block(3, 1), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(every_block(3, 0), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(every_block(3, 9), (std::vector<bool>{false, false, false}));
}

TEST(ChooseBlocks, RecomputesAsFewAsFitAndPredictsWhatAStepTakes) {
  for (Sized (*make)() : {large_gpt, large_resnet}) {
    const Sized sized = make();
    // Only a few of the requested rows are measured.
    const RecomputeMeasure measure{
        .batch = labeled(sized.input.narrow(0, 0, 16), sized.target.narrow(0, 0, 16)),
        .rows = sized.input.size(0),
        .state_bytes = 1000};
    const int64_t blocks = sized.model->blocks();
    const auto free = choose_blocks(*sized.model, measure, int64_t{1} << 40);
    EXPECT_EQ(free.blocks, every_block(blocks, 0));
    const auto actual = static_cast<double>(plain_peak(sized, free.blocks) + 1000);
    EXPECT_NEAR(static_cast<double>(free.bytes) / actual, 1, 0.05);

    const int64_t most = free.bytes * 7 / 10;
    const auto choice = choose_blocks(*sized.model, measure, most);
    const auto count = std::count(choice.blocks.begin(), choice.blocks.end(), true);
    EXPECT_GT(count, 0);
    EXPECT_LT(count, blocks);
    EXPECT_LE(choice.bytes, most);
    EXPECT_NEAR(static_cast<double>(choice.bytes) /
                    static_cast<double>(plain_peak(sized, choice.blocks) + 1000),
                1, 0.05);
    EXPECT_THROW(choose_blocks(*sized.model, measure, 2000), UsageError);
  }
}

TEST(ChooseBlocks, LeavesStatisticsAndGradientsAsTheyWere) {
  const Sized sized = large_resnet();
  std::vector<at::Tensor> before;
  for (const auto& buffer : sized.model->buffers()) before.push_back(buffer.tensor.clone());
  const RecomputeMeasure measure{.batch = labeled(sized.input, sized.target),
                                 .rows = sized.input.size(0)};
  choose_blocks(*sized.model, measure, int64_t{40} << 20);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(sized.model->buffers()[i].tensor, before[i]));
  }
  for (const auto& parameter : sized.model->parameters()) {
    EXPECT_FALSE(parameter.tensor.grad().defined());
  }
}

}  // namespace
}  // namespace gallop::train
