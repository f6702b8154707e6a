#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

// So many classes that logits are not stored.
const model::Task kManyWords{.kind = model::Task::Kind::kText, .classes = 200'000, .context = 8};

std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {16, 12}}, kImages, 1); }
std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 8}, kImages, 1); }

class CompiledStep : public testing::TestWithParam<Case> {};

TEST_P(CompiledStep, LeavesTheBitsOfTheStepAsItIs) {
  const Case& tested = GetParam();
  // Passes that compute differently are compared with the step only by verification.
  Trainee plain(tested, std::nullopt);
  Trainee compiled(
      tested,
      compile::CompileConfig{.verify_every = 4, .passes_off = compile::names_of_rounding_passes()});
  Trainee faster(tested, compile::CompileConfig{.verify_every = 1});
  for (int64_t step = 0; step < 8; ++step) {
    seed_step(3, step, at::kCPU);
    const int64_t rows = step == 4 ? 3 : 6;
    const auto [input, target] = batch_of(tested, rows);
    const double lr = 0.01 * static_cast<double>(step + 1);
    const std::vector<double> scheduled(tested.config.scheduled.size(), lr);
    const StepResult wanted =
        plain.step->run(labeled(input, target), step, lr, step % 4 == 0, scheduled);
    const StepResult got =
        compiled.step->run(labeled(input, target), step, lr, step % 4 == 0, scheduled);
    EXPECT_EQ(got.tally.loss_sum, wanted.tally.loss_sum) << "step " << step;
    EXPECT_EQ(got.tally.top1, wanted.tally.top1);
    EXPECT_EQ(got.gradient_norm, wanted.gradient_norm);
    EXPECT_TRUE(got.finite && wanted.finite);
    faster.step->run(labeled(input, target), step, lr, step % 4 == 0, scheduled);
  }
  EXPECT_EQ(faster.step->compile_report()->verified, 8);
  const NamedTensors wanted = plain.everything(), got = compiled.everything();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].tensor, wanted[i].tensor)) << wanted[i].name;
  }
  EXPECT_EQ(compiled.step->compile_report()->replayed, 8);
  EXPECT_EQ(compiled.step->compile_report()->verified, 2);
  EXPECT_TRUE(compiled.step->compile_report()->reasons.empty())
      << compiled.step->compile_report()->reasons.front();
}

// The layers of built-in models call the kernels themselves; passes that insert kernels are for
// models of LibTorch's operators. If an operator were replaced here, a layer would have two paths
// to its kernel.
TEST_P(CompiledStep, HasItsKernelsFromTheLayersAlone) {
  const Case& tested = GetParam();
  Trainee trainee(tested, compile::CompileConfig());
  const auto [input, target] = batch_of(tested, 6);
  const auto operators_after = [&, &input = input, &target = target](const std::string& pass) {
    const auto graphs =
        trainee.step->graphs(labeled(input, target), pass, {.seconds = 0, .least = 1, .most = 1});
    EXPECT_EQ(graphs.refusal, "");
    std::map<std::string, int64_t> counts;
    for (const auto& all : graphs.stages.front().listing.operators) counts[all.op] = all.count;
    return counts;
  };
  const auto before = operators_after("merge-matmuls"), after = operators_after("activations");
  EXPECT_EQ(after, before);
}

using precision::Precision;

std::unique_ptr<model::Model> gpt_of_many_words() {
  return make_gpt({.layers = 1, .width = 4, .heads = 2, .activation = "swiglu"}, kManyWords, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, CompiledStep,
    testing::Values(
        Case{"MlpDropout", [] { return make_mlp({.hidden = {16}, .dropout = 0.2}, kImages, 1); },
             "adamw"},
        Case{"MlpClipped", mlp, "sgd", {.gradient_accumulation = 3, .clip_grad_norm = 0.1}},
        Case{"MlpFp16", mlp, "adamw", {.precision = Precision::kFp16}},
        Case{"MlpFp8", mlp, "adamw", {.precision = Precision::kFp8, .gradient_accumulation = 2}},
        Case{"Resnet", resnet, "sgd", {.loss = cross_entropy_loss(0.1)}},
        Case{"MlpScheduled",
             mlp,
             "sgd",
             {.precision = Precision::kBf16,
              .gradient_accumulation = 2,
              .scheduled = {ScheduledParameter::kLabelSmoothing}}},
        Case{"GptScheduledDropout",
             [] {
               return make_gpt({.layers = 1, .width = 12, .heads = 2, .dropout = 0.1}, kText, 1);
             },
             "adamw",
             {.scheduled = {ScheduledParameter::kDropout, ScheduledParameter::kMomentum,
                            ScheduledParameter::kBeta2, ScheduledParameter::kWeightDecay}},
             true},
        Case{"ResnetBf16",
             resnet,
             "sgd",
             {.precision = Precision::kBf16, .gradient_accumulation = 2}},
        Case{"ResnetBf16Contiguous",
             resnet,
             "sgd",
             {.precision = Precision::kBf16},
             /*text=*/false,
             /*channels_last=*/false},
        Case{"ResnetFp16",
             resnet,
             "adamw",
             {.precision = Precision::kFp16, .clip_grad_norm = 1.0, .skip_nonfinite = true}},
        Case{"VitDropout",
             [] {
               return make_vit({.patch = 4, .width = 12, .depth = 2, .heads = 2, .dropout = 0.1},
                               kImages, 1);
             },
             "adamw"},
        Case{"VitBf16",
             [] { return make_vit({.patch = 4, .width = 12, .depth = 2, .heads = 2}, kImages, 1); },
             "adamw",
             {.precision = Precision::kBf16}},
        Case{"GptDropout",
             [] {
               return make_gpt({.layers = 2, .width = 12, .heads = 2, .dropout = 0.1}, kText, 1);
             },
             "adamw",
             {.clip_grad_norm = 1.0},
             true},
        Case{
            "GptBf16",
            [] { return make_gpt({.layers = 2, .width = 16, .heads = 2, .dropout = 0}, kText, 1); },
            "adamw",
            {.precision = Precision::kBf16},
            true},
        Case{"GptManyWords", gpt_of_many_words, "sgd", {.gradient_accumulation = 2}, true},
        Case{"GptRotary",
             [] {
               return make_gpt({.layers = 2,
                                .width = 16,
                                .heads = 2,
                                .dropout = 0,
                                .tied = false,
                                .positions = "rotary",
                                .norm = "rms"},
                               kText, 1);
             },
             "sgd",
             {},
             true}),
    [](const auto& tested) { return tested.param.name; });
// LibTorch's fp8 GEMM on the CPU is oneDNN's reference, which takes milliseconds, as do those in
// bf16 without AVX-512.
INSTANTIATE_TEST_SUITE_P(
    Long, CompiledStep,
    testing::Values(
        Case{"GptManyWordsBf16",
             gpt_of_many_words,
             "sgd",
             {.precision = Precision::kBf16, .gradient_accumulation = 2},
             true},
        Case{
            "GptExperts",
            [] { return gpt_of_experts({.num_experts = 4, .z_loss_coef = 0.01}, /*dropout=*/0.1); },
            "adamw",
            {.gradient_accumulation = 2, .every_target_counts = true},
            true},
        Case{"GptExpertsCapacityBf16",
             [] {
               return gpt_of_experts(
                   {.num_experts = 4, .capacity_factor = 1, .load_balancing = "bias"});
             },
             "adamw",
             {.precision = Precision::kBf16, .clip_grad_norm = 1.0},
             true},
        Case{"GptFp8",
             [] {
               return make_gpt({.layers = 2, .width = 32, .heads = 2, .dropout = 0.1}, kText, 1);
             },
             "sgd",
             {.precision = Precision::kFp8, .clip_grad_norm = 1.0},
             true},
        Case{"VitFp8",
             [] { return make_vit({.patch = 4, .width = 32, .depth = 2, .heads = 2}, kImages, 1); },
             "adamw",
             {.precision = Precision::kFp8}}),
    [](const auto& tested) { return tested.param.name; });

TEST(CompiledStep, NamesWhatIsNotFinite) {
  for (const bool skip : {false, true}) {
    const Case tested{"Mlp", mlp, "sgd", {.skip_nonfinite = skip}};
    Trainee trainee(tested, compile::CompileConfig());
    const auto parameters = trainee.model->parameters();
    // Several classes: a prediction that is correct for all has no gradient.
    const at::Tensor input = at::randn({4, 3, 8, 8}), target = at::arange(4);
    for (int64_t step = 0; step < 4; ++step)
      trainee.step->run(labeled(input, target), step, 0.1, false);
    EXPECT_EQ(trainee.step->compile_report()->replayed, 4);
    const auto bad = at::full({4, 3, 8, 8}, NAN);
    EXPECT_EQ(trainee.step->run(labeled(bad, target), 4, 0.1, false).non_finite_tensor, "loss");
    EXPECT_TRUE(std::isfinite(parameters.front().tensor.sum().item<double>()));
    // Only the GEMM with the last layer's weights overflows in the backward pass.
    {
      const at::NoGradGuard no_grad;
      parameters[0].tensor.zero_();
      parameters[1].tensor.fill_(1e-30);
      parameters[2].tensor.fill_(3e38);
    }
    const auto result = trainee.step->run(labeled(input.mul(1e30), target), 5, 0.1, false);
    EXPECT_FALSE(result.finite);
    EXPECT_FALSE(result.non_finite_tensor.empty());
  }
}

}  // namespace
}  // namespace gallop::train
