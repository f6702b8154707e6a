// Exported programs whose linear layers are divided among processes next to one process.
#include <functional>
#include <map>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/train/step/step.h"
#include "unit/base/error_of.h"
#include "unit/train/exported_net.h"

namespace gallop::train {
namespace {

// The number of parameters that two processes divide. Of the other programs they divide none: these
// have no linear layers, or none whose outputs reach only linear layers.
const std::map<std::string, size_t> kDivided = {{"bert", 13},
                                                {"buffer-mutation", 3},
                                                {"clip", 20},
                                                {"constants", 1},
                                                {"convnext", 6},
                                                {"custom-function", 3},
                                                {"diffusion-unet", 10},
                                                {"dit", 9},
                                                {"embedding-bag", 3},
                                                {"encoder", 6},
                                                {"gpt2", 6},
                                                {"heads", 21},
                                                {"llama", 7},
                                                {"modes", 6},
                                                {"mixtral", 4},
                                                {"mlp", 3},
                                                {"no-grad", 3},
                                                {"qwen3", 7},
                                                {"swin", 12},
                                                {"t5", 16},
                                                {"vae", 6},
                                                {"vit", 12},
                                                {"whisper", 24}};

struct Results {
  std::vector<double> losses;
  NamedTensors weights, replicated;  // Weights of the whole model, in the first process.
  at::Tensor evaluation;
  size_t divided = 0;
};

Results train(const Case& tested, const NamedTensors& batch, parallel::Collectives* collectives) {
  Trainee trainee(tested, std::nullopt, collectives);
  Results results;
  const int64_t steps = 3;
  for (int64_t step = 0; step < steps; ++step) {
    const StepResult result =
        trainee.step->run(batch, step, 0.01, false, {}, {.rows = batch.front().tensor.size(0)});
    results.losses.push_back(result.tally.loss());
  }
  if (tested.config.compile) {
    const compile::CompileReport& report = *trainee.step->compile_report();
    EXPECT_TRUE(report.reasons.empty()) << report.reasons.front();
    EXPECT_EQ(report.replayed, steps);
  }
  trainee.optimizer->use_averaged_weights(true);  // As for a checkpoint.
  std::vector<LogicalTensor> weights = replicas_of(trainee.model->parameters());
  if (collectives != nullptr) {
    weights = trainee.strategy->parameters_in_parts();
    weights.resize(trainee.model->parameters().size());
    results.weights = gathered(*collectives, weights);
  } else {
    results.weights = copies_of(trainee.model->parameters());
  }
  for (const LogicalTensor& weight : weights) results.divided += weight.is_replicated() ? 0 : 1;
  results.replicated = copies_of(replicated(weights));
  const at::NoGradGuard no_grad;
  trainee.model->set_training(false);
  results.evaluation = trainee.model->forward_to_head(batch).logits();
  if (collectives != nullptr) parallel::any_of(*collectives, false);
  return results;
}

std::vector<Results> train_in(int size, const Case& tested, const NamedTensors& batch) {
  std::vector<Results> all(static_cast<size_t>(size));
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    all[static_cast<size_t>(collectives.rank())] = train(tested, batch, &collectives);
  });
  return all;
}

void expect_near(const at::Tensor& got, const at::Tensor& wanted, const std::string& name) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << name;
  const double difference = got.to(at::kDouble).sub(wanted.to(at::kDouble)).norm().item<double>();
  EXPECT_LE(difference, 1e-5 * std::max(1.0, wanted.to(at::kDouble).norm().item<double>())) << name;
}

void expect_near_one_process(const Case& tested, const NamedTensors& batch, int size,
                             size_t divided) {
  Case in_one = tested;
  in_one.strategy = "ddp";
  const Results one = train(in_one, batch, nullptr);
  for (const Results& rank : train_in(size, tested, batch)) {
    for (size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(rank.losses[i] / one.losses[i], 1, 1e-5) << "step " << i;
    }
    EXPECT_EQ(rank.divided, divided);
    expect_near(rank.evaluation, one.evaluation, "evaluation");
    if (rank.weights.empty()) continue;
    ASSERT_EQ(rank.weights.size(), one.weights.size());
    for (size_t i = 0; i < one.weights.size(); ++i) {
      expect_near(rank.weights[i].tensor, one.weights[i].tensor, one.weights[i].name);
    }
  }
}

// Without entries that are colwise or rowwise, all layers are divided for which it is possible.
Case tested_with(const Net& net, const std::string& plan = "[]") {
  Case tested = net.tested({.clip_grad_norm = 0.5});
  tested.optimizer = "sgd momentum=0.9";
  tested.strategy = "tensor tp_plan=" + plan;
  return tested;
}

// Ranks that are threads share LibTorch's generator.
bool draws(const Net& net) { return !net.make()->draws_from_generator().empty(); }

class TensorExportedStep : public testing::TestWithParam<std::string> {};

TEST_P(TensorExportedStep, IsNearOneProcess) {
  const Net net(GetParam());
  const auto known = kDivided.find(net.name);
  if (known == kDivided.end()) {
    const std::string error = error_of([&] { train_in(2, tested_with(net), net.batch()); });
    EXPECT_TRUE(error.starts_with("parallel.name=tensor: ")) << error;
    EXPECT_NE(error.find("has no linear layers that 2 processes can divide"), std::string::npos)
        << error;
  } else if (draws(net)) {
    EXPECT_EQ(train_in(2, tested_with(net), net.batch()).front().divided, known->second);
  } else {
    expect_near_one_process(tested_with(net), net.batch(), 2, known->second);
  }
}

class CompiledTensorExportedStep : public testing::TestWithParam<std::string> {};

TEST_P(CompiledTensorExportedStep, IsNearOneProcess) {
  const Net net(GetParam());
  const auto known = kDivided.find(net.name);
  if (known == kDivided.end() || draws(net)) return;
  Case compiled = tested_with(net);
  compiled.config.compile = compile::CompileConfig();
  expect_near_one_process(compiled, net.batch(), 2, known->second);
}

// Each has a single head, whose dropout draws what that of one process does.
TEST(TensorExportedHeads, AreNearOneProcess) {
  const Net net("heads");
  expect_near_one_process(tested_with(net), net.batch(), 4, 19);
}

// Tables of embeddings, and the layers that compute the logits, for 3 processes: rows and classes
// are divided as evenly as possible.
TEST(TensorExportedVocabulary, IsNearOneProcess) {
  const auto test = [](const std::string& name, const std::string& plan, size_t divided) {
    SCOPED_TRACE(name);
    const Net net(name);
    Case tested = tested_with(net, plan);
    tested.config.loss = cross_entropy_loss(0.1);
    for (const int size : {2, 3, 5}) {
      expect_near_one_process(tested, net.batch(), size, divided);
    }
  };
  test("gpt2", "[transformer.wte=rowwise]", 1);  // Tied.
  test("llama", "[model.embed_tokens=rowwise,lm_head=colwise]", 2);
  test("vit", "[head=colwise]", 2);
}

// Two stages, the layers of each divided among two processes.
class PipelineOfTensorExportedStep : public testing::TestWithParam<std::string> {};

TEST_P(PipelineOfTensorExportedStep, IsNearOneProcess) {
  const Net net(GetParam());
  Case tested = net.tested({.gradient_accumulation = 4, .clip_grad_norm = 0.5});
  tested.optimizer = "sgd momentum=0.9";
  tested.strategy = "pipeline tensor_parallel_degree=2";
  expect_near_one_process(tested, net.batch(24), 4, kDivided.at(net.name));
  tested.config.compile = compile::CompileConfig();
  expect_near_one_process(tested, net.batch(24), 4, kDivided.at(net.name));
}

INSTANTIATE_TEST_SUITE_P(Usual, TensorExportedStep,
                         testing::ValuesIn(model::exported::names_in(model::exported::folder())),
                         model::exported::name_of_case);
INSTANTIATE_TEST_SUITE_P(Usual, CompiledTensorExportedStep,
                         testing::Values("bert", "encoder", "gpt2", "heads", "llama", "swin",
                                         "whisper"),
                         model::exported::name_of_case);

INSTANTIATE_TEST_SUITE_P(Usual, PipelineOfTensorExportedStep,
                         testing::Values("bert", "gpt2", "llama", "swin"),
                         model::exported::name_of_case);

}  // namespace
}  // namespace gallop::train
