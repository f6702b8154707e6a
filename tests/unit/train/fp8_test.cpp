// Training with linear layers in fp8, which LibTorch also supports on the CPU, if slowly.
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
#include "gallop/compile/recorder.h"
#include "gallop/model/functional/fp8_linear.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/train/step/format.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

constexpr int64_t kPixels = 3 * 8 * 8;

// Images of five classes, each around its own center, some nearer to another class's center.
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
    loss =
        step.run(labeled(input.narrow(0, at, kBatch), target.narrow(0, at, kBatch)), i, 1e-3, false)
            .tally.loss();
  }
  const at::NoGradGuard no_grad;
  const auto [unseen, wanted] = clouds(1000, 3);
  const double right =
      model->forward(unseen).argmax(1).eq(wanted).to(at::kDouble).mean().item<double>();
  return {.loss = loss, .accuracy = right};
}

class Fp8Training : public testing::TestWithParam<uint64_t> {};

TEST_P(Fp8Training, LearnsWhatFp32Learns) {
  const Learned fp32 = learn(Precision::kFp32, GetParam()),
                fp8 = learn(Precision::kFp8, GetParam());
  EXPECT_GT(fp32.accuracy, 0.9);
  EXPECT_NEAR(fp8.accuracy, fp32.accuracy, 0.02);
  EXPECT_NEAR(fp8.loss, fp32.loss, 0.1 * fp32.loss + 0.02);
  EXPECT_NE(fp8.loss, fp32.loss);
}

// LibTorch's fp8 GEMM on the CPU is oneDNN's reference, which takes milliseconds.
INSTANTIATE_TEST_SUITE_P(Long, Fp8Training, testing::Values(1, 2));

std::vector<at::Tensor> gradients(const Case& tested, Precision precision) {
  Case in = tested;
  in.config.precision = precision;
  Trainee trainee(in, std::nullopt);
  seed_step(3, 0, at::kCPU);
  const auto [input, target] = batch_of(in, 32);
  trainee.step->run(labeled(input, target), 0, /*lr=*/0, false);
  std::vector<at::Tensor> all;
  for (const auto& parameter : trainee.model->parameters()) {
    all.push_back(parameter.tensor.grad().clone());
  }
  return all;
}

// Rounding of activations to 3 bits and of gradients to 2 bits affects single values, but hardly
// the direction of a gradient.
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

// Checks the rules of LibTorch and cuBLASLt for fp8 GEMMs on a GPU. Returns the number of GEMMs.
int64_t expect_rules_of_gpus(const compile::Graph& graph) {
  int64_t products = 0;
  for (const compile::Node& node : graph.nodes) {
    if (compile::name_of(node.op) != "aten::_scaled_mm") continue;
    products += 1;
    const auto view = [&](const compile::Operand& operand) {
      return graph.views[operand.views[0]];
    };
    const auto a = view(node.arguments[0]), b = view(node.arguments[1]);
    EXPECT_EQ(a.strides, (std::vector<int64_t>{a.sizes[1], 1})) << "row by row";
    EXPECT_EQ(b.strides, (std::vector<int64_t>{1, b.sizes[0]})) << "column by column";
    EXPECT_EQ(a.sizes[1] % 16, 0);
    EXPECT_EQ(b.sizes[1] % 16, 0);
    EXPECT_TRUE(a.dtype == at::kFloat8_e4m3fn || b.dtype == at::kFloat8_e4m3fn);
    for (const size_t scale : {2, 3}) {
      EXPECT_EQ(view(node.arguments[scale]).dtype, at::kFloat);
      EXPECT_EQ(view(node.arguments[scale]).numel(), 1);
    }
    const compile::Operand& bias = node.arguments[4];
    if (bias.kind != compile::Operand::Kind::kTensor || bias.views[0] == compile::kNone) continue;
    EXPECT_EQ(view(bias).dtype, at::kBFloat16);
    EXPECT_EQ(view(node.results[0]).dtype, at::kBFloat16);
  }
  return products;
}

TEST(Fp8, ProductsKeepToTheRulesOfGpus) {
  const at::Tensor weight = at::randn({32, 48}), bias = at::randn({32});
  const std::vector<at::Tensor> inputs = {at::randn({48, 33}).t(), at::randn({64, 48}),
                                          at::randn({5, 3, 48})};
  for (const at::Tensor& input : inputs) {
    for (const bool turned : {false, true}) {
      const at::Tensor factor = at::randn({32, input.numel() / 48});
      // The incoming gradient is expanded from one element, or is column-major.
      const auto gradients = [&](const std::vector<at::Tensor>& in) {
        const at::Tensor x = in[0].detach().requires_grad_(), w = in[1].detach().requires_grad_();
        const at::Tensor y = model::functional::fp8_linear(x, w, in[2]).reshape({-1, 32});
        (turned ? y.t() * in[3] : y).sum().backward();
        return std::vector<at::Tensor>{x.grad(), w.grad()};
      };
      const auto recording = compile::record(gradients, {input, weight, bias, factor});
      EXPECT_EQ(recording.refusal, "");
      EXPECT_EQ(expect_rules_of_gpus(recording.graph), 3);
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
