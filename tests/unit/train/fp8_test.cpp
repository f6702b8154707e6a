// Training with linear layers in fp8, which LibTorch has on the CPU too, if slowly.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/train/step_format.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

constexpr int64_t kPixels = 3 * 8 * 8;

// Images of five classes, each around a point of its own, some nearer to another's.
std::pair<at::Tensor, at::Tensor> clouds(int64_t count, uint64_t seed) {
  const at::Tensor centers =
      at::randn({5, kPixels}, at::detail::createCPUGenerator(1), at::kFloat) * 0.35;
  const at::Tensor target = at::arange(count) % 5;
  const at::Tensor noise =
      at::randn({count, kPixels}, at::detail::createCPUGenerator(seed), at::kFloat);
  return {(centers.index_select(0, target) + noise).view({count, 3, 8, 8}), target};
}

struct Learned {
  double loss = 0, accuracy = 0;
};

Learned learn(Precision precision, uint64_t seed) {
  const auto model = make_mlp({.hidden = {64, 64}}, kImages, seed);
  const auto optimizers = optim::built_in_optimizers();
  const auto optimizer =
      optimizers.build(config::Component(optimizers, "adamw"), model->parameters());
  TrainStep step(*model, *optimizer, {.precision = precision});
  const auto [input, target] = clouds(2000, 2);
  double loss = 0;
  constexpr int64_t kBatch = 50, kSteps = 120;
  for (int64_t i = 0; i < kSteps; ++i) {
    const int64_t at = i * kBatch % input.size(0);
    loss = step.run(input.narrow(0, at, kBatch), target.narrow(0, at, kBatch), i, 1e-3, false)
               .tally.loss();
  }
  const at::NoGradGuard no_grad;
  const auto [unseen, wanted] = clouds(1000, 3);
  const double right =
      model->forward(unseen).argmax(1).eq(wanted).to(at::kDouble).mean().item<double>();
  return {.loss = loss, .accuracy = right};
}

TEST(Fp8, LearnsWhatFp32Learns) {
  for (const uint64_t seed : {1, 2}) {
    const Learned fp32 = learn(Precision::kFp32, seed), fp8 = learn(Precision::kFp8, seed);
    EXPECT_GT(fp32.accuracy, 0.9);
    EXPECT_NEAR(fp8.accuracy, fp32.accuracy, 0.02);
    EXPECT_NEAR(fp8.loss, fp32.loss, 0.1 * fp32.loss + 0.02);
    EXPECT_NE(fp8.loss, fp32.loss);
  }
}

std::vector<at::Tensor> gradients(const Case& tested, Precision precision) {
  Case in = tested;
  in.config.precision = precision;
  Trainee trainee(in, std::nullopt);
  seed_step(3, 0, at::kCPU);
  const auto [input, target] = batch_of(in, 32);
  trainee.step->run(input, target, 0, /*lr=*/0, false);
  std::vector<at::Tensor> all;
  for (const auto& parameter : trainee.model->parameters()) {
    all.push_back(parameter.tensor.grad().clone());
  }
  return all;
}

// Rounding of activations by 3 bits and of gradients by 2 shows in single numbers and hardly in
// where a gradient points.
TEST(Fp8, GradientsPointWhereThoseOfFp32Do) {
  const Case networks[] = {
      {"Mlp",
       [] {
         return make_mlp({.hidden = {64, 64}}, kImages, 1);
       },
       "sgd"},
      {"Gpt",
       [] { return make_gpt({.layers = 2, .width = 32, .heads = 2, .dropout = 0}, kText, 1); },
       "sgd",
       {},
       /*text=*/true}};
  for (const Case& network : networks) {
    const auto fp32 = gradients(network, Precision::kFp32),
               fp8 = gradients(network, Precision::kFp8);
    for (size_t i = 0; i < fp32.size(); ++i) {
      const double scale = fp32[i].norm().item<double>();
      const double error = (fp8[i] - fp32[i]).norm().item<double>() / scale;
      EXPECT_LT(error, 0.25) << network.name << ' ' << i;
      EXPECT_GT(error, 1e-4) << network.name << ' ' << i;
    }
  }
}

std::string names_of(const std::vector<StepFormat>& formats) {
  std::string names;
  for (const auto& format : formats) names += format.describe() + "; ";
  return names;
}

TEST(CandidateFormats, LeaveOutFp8UnlessItIsAskedFor) {
  EXPECT_EQ(names_of(candidate_formats("auto", "false", true, at::kCPU)), "fp32; bf16; ");
  EXPECT_EQ(names_of(candidate_formats("auto", "false", true, at::kCUDA)),
            "fp32; tf32; bf16; fp16; ");
  EXPECT_EQ(names_of(candidate_formats("fp8", "auto", true, at::kCUDA)),
            "fp8; fp8, channels_last; ");
  EXPECT_EQ(names_of(candidate_formats("tf32", "auto", false, at::kCUDA)), "tf32; ");
  EXPECT_THROW(candidate_formats("fp4", "auto", false, at::kCPU), UsageError);
}

}  // namespace
}  // namespace gallop::train
