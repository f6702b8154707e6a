// Steps of processes that divide layers, stages and the optimizer's state at once, next to those
// that divide less: the same bits of losses, norms, weights and states.
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "gallop/model/frozen.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/parallel/pipeline_schedule.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"
#include "gallop/train/step/step.h"
#include "unit/base/error_of.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

// Matrices large enough to be cut. The vocabulary of 11 has unequal parts.
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 4, .width = 48, .heads = 6, .dropout = 0.1}, kText, 1);
}
std::unique_ptr<model::Model> llama() {
  return make_gpt({.layers = 4,
                   .width = 72,
                   .heads = 6,
                   .stochastic_depth = 0.2,
                   .bias = false,
                   .tied = false,
                   .activation = "swiglu",
                   .positions = "rotary",
                   .norm = "rms"},
                  kText, 1);
}
std::unique_ptr<model::Model> vit() {
  return make_vit({.patch = 4, .width = 48, .depth = 4, .heads = 6, .dropout = 0.1}, kImages, 1);
}
std::unique_ptr<model::Model> frozen_gpt() { return freeze(gpt(), {"transformer.wte.*"}); }
std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {96, 64, 48}}, kImages, 1); }
std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 14}, kImages, 1); }

// The second batch has fewer samples than replicas and micro-batches.
constexpr int64_t kRows[] = {8, 1, 7};

struct Results {
  std::vector<StepResult> steps;
  NamedTensors here;            // The weights of this process.
  NamedTensors weights, state;  // On rank 0, of the whole model.
};

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

std::vector<LogicalTensor> logical_weights(const Trainee& trainee) {
  auto all = trainee.strategy->parameters_in_parts();
  if (all.empty()) all = replicas_of(trainee.model->parameters());
  all.resize(trainee.model->parameters().size());  // Without those that are not trained.
  return all;
}

Results train(const Case& tested, const Batches& batches, parallel::Collectives& collectives) {
  Trainee trainee(tested, std::nullopt, &collectives);
  Results results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [input, target] = batches[i];
    results.steps.push_back(
        trainee.step->run(part_of(labeled(input, target), trainee.strategy.get()),
                          static_cast<int64_t>(i), 0.01, i % 2 == 0, {}, {.rows = input.size(0)}));
  }
  if (tested.config.compile) {
    EXPECT_EQ(trainee.step->compile_report()->replayed, static_cast<int64_t>(batches.size()));
  }
  trainee.optimizer->use_averaged_weights(true);
  results.here = copies_of(trainee.model->parameters());
  for (const auto& buffer : copies_of(trainee.model->buffers())) results.here.push_back(buffer);
  results.weights = gathered(collectives, logical_weights(trainee));
  results.state = gathered(collectives, trainee.optimizer->logical_state());
  trainee.optimizer->use_averaged_weights(false);
  // The groups of an axis are left when none is in use.
  parallel::any_of(collectives, false);
  return results;
}

struct Layout {
  int size;
  std::string strategy;
};

std::vector<Results> train_in(const Layout& layout, Case tested, const Batches& batches) {
  tested.strategy = layout.strategy;
  std::vector<Results> all(static_cast<size_t>(layout.size));
  run_on_one_core_each(layout.size, [&](parallel::Collectives& collectives) {
    all[static_cast<size_t>(collectives.rank())] = train(tested, batches, collectives);
  });
  return all;
}

void expect_bits(const Case& tested, const Layout& wanted_in, const std::vector<Layout>& layouts) {
  Batches batches;
  for (const int64_t rows : kRows) {
    batches.push_back(batch_of(tested, rows));
    // Micro-batches with different numbers of targets that count.
    if (tested.text) batches.back().second.slice(0, 0, 2).slice(1, 2).fill_(-100);
  }
  const Results wanted = std::move(train_in(wanted_in, tested, batches).front());
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(fmt::format("{} processes, {}", layout.size, layout.strategy));
    const std::vector<Results> all = train_in(layout, tested, batches);
    for (const Results& rank : all) {
      for (size_t i = 0; i < wanted.steps.size(); ++i) {
        EXPECT_EQ(rank.steps[i].tally.loss_sum, wanted.steps[i].tally.loss_sum) << i;
        EXPECT_EQ(rank.steps[i].tally.count, wanted.steps[i].tally.count) << i;
        EXPECT_EQ(rank.steps[i].tally.top1, wanted.steps[i].tally.top1) << i;
        EXPECT_EQ(rank.steps[i].gradient_norm, wanted.steps[i].gradient_norm) << i;
      }
    }
    expect_equal(all.front().here, wanted.here);
    expect_equal(all.front().weights, wanted.weights);
    expect_equal(all.front().state, wanted.state);
  }
}

std::string joined(const std::vector<std::string>& options) {
  std::string text;
  for (const std::string& option : options) {
    if (!option.empty()) text += " " + option;
  }
  return text;
}
std::string tensor(int degree, const std::vector<std::string>& options = {}) {
  return fmt::format("tensor tensor_parallel_degree={}{}", degree, joined(options));
}
std::string pipeline(const std::vector<std::string>& options = {}) {
  return "pipeline pipeline_parallel_degree=2" + joined(options);
}

constexpr const char *kZero1 = "data_parallel=zero-1", *kZero2 = "data_parallel=zero-2",
                     *kSequences = "sequence_parallel=true", *kParts = "tensor_parallel_degree=2";

class TensorShards : public testing::TestWithParam<Case> {};
class TensorShardsInMoreWays : public testing::TestWithParam<Case> {};
class PipelineShards : public testing::TestWithParam<Case> {};
class PipelineShardsInMoreWays : public testing::TestWithParam<Case> {};
class ThreeAxes : public testing::TestWithParam<Case> {};
class ThreeAxesInMoreWays : public testing::TestWithParam<Case> {};

void expect_bits_of_tensor(const Case& tested, int degree, const std::string& sequences) {
  std::vector<Layout> layouts = {{2 * degree, tensor(degree, {sequences, kZero1})}};
  // zero-2 adds up micro-batches in another order.
  if (tested.config.gradient_accumulation == 1) {
    layouts.push_back({2 * degree, tensor(degree, {sequences, kZero2})});
  }
  expect_bits(tested, {2 * degree, tensor(degree, {sequences})}, layouts);
}

TEST_P(TensorShards, HaveTheBitsOfReplicas) {
  expect_bits_of_tensor(GetParam(), 2, GetParam().config.clip_grad_norm ? kSequences : "");
}
TEST_P(TensorShardsInMoreWays, HaveTheBitsOfReplicas) {
  for (const int degree : {2, 3}) {
    for (const char* sequences : {"", kSequences}) {
      expect_bits_of_tensor(GetParam(), degree, sequences);
    }
  }
}

constexpr int64_t kMicroBatches = 4;

// Without the passes that change rounding.
Case compiled_gpt() {
  StepConfig config{.gradient_accumulation = kMicroBatches, .clip_grad_norm = 0.5};
  config.compile.emplace().passes_off = compile::names_of_rounding_passes();
  return {"CompiledGpt", gpt, "adamw", config, true};
}

TEST_P(PipelineShards, HaveTheBitsOfReplicas) {
  expect_bits(GetParam(), {4, pipeline()}, {{4, pipeline({kZero1})}});
}
TEST_P(PipelineShardsInMoreWays, HaveTheBitsOfReplicas) {
  for (const auto& kind : parallel::pipeline_schedules()) {
    expect_bits(GetParam(), {4, pipeline()},
                {{4, pipeline({fmt::format("schedule={}", kind.name), kZero1})}});
  }
}

// Two parts of each layer, in each of two stages, of each of two replicas.
TEST_P(ThreeAxes, HaveTheBitsOfTwo) {
  expect_bits(GetParam(), {4, tensor(2, {kSequences})},
              {{8, pipeline({kParts, kSequences, kZero1})}});
}
TEST(CompiledThreeAxes, HaveTheBitsOfTwo) {
  expect_bits(compiled_gpt(), {4, tensor(2, {kSequences})},
              {{8, pipeline({kParts, kSequences, kZero1})}});
}
TEST_P(ThreeAxesInMoreWays, HaveTheBitsOfTwo) {
  for (const char* sequences : {"", kSequences}) {
    std::vector<Layout> layouts;
    for (const auto& kind : parallel::pipeline_schedules()) {
      const std::string schedule = fmt::format("schedule={}", kind.name);
      layouts.push_back({8, pipeline({schedule, kParts, sequences})});
      layouts.push_back({8, pipeline({schedule, kParts, sequences, kZero1})});
    }
    expect_bits(GetParam(), {4, tensor(2, {sequences})}, layouts);
  }
}

std::vector<Case> of_layers() {
  return {{"GptAdamw", gpt, "adamw", {.clip_grad_norm = 0.5}, true},
          {"CompiledGpt",
           gpt,
           "adamw",
           {.clip_grad_norm = 0.5, .compile = compile::CompileConfig()},
           true},
          {"LlamaAccumulated",
           llama,
           "adamw weight_decay=0.1",
           {.gradient_accumulation = 2, .clip_grad_norm = 0.5},
           true},
          {"VitEma", vit, "sgd momentum=0.9", {}, false, true, "[{ema: {decay: 0.9}}]"},
          {"FrozenGptLion", frozen_gpt, "lion", {.clip_value = 0.01}, true}};
}

// With every optimizer of single elements, and every wrapper.
std::vector<Case> more_of_layers() {
  std::vector<Case> all = of_layers();
  const std::set<std::string> of_matrices = {"adafactor", "lamb", "lars", "muon"};
  for (const std::string& optimizer : optim::built_in_optimizers().names()) {
    if (of_matrices.contains(optimizer)) continue;
    all.push_back({"Optimizer_" + in_a_name(optimizer), gpt, optimizer, {}, true});
  }
  for (const auto& [name, wrappers] : optim::every_wrapping()) {
    if (!name.empty()) all.push_back({name, gpt, "adamw", {}, true, true, wrappers});
  }
  return all;
}

std::vector<Case> of_stages() {
  const StepConfig clipped{.gradient_accumulation = kMicroBatches, .clip_grad_norm = 0.5};
  const StepConfig plain{.gradient_accumulation = kMicroBatches};
  return {{"GptAdamw", gpt, "adamw", clipped, true},
          {"ResnetIn8BitsEma", resnet, "adamw state_bits=8", plain, false, true,
           "[{ema: {decay: 0.9}}]"},
          {"MlpMuon", mlp, "muon", clipped},
          compiled_gpt()};
}

std::vector<Case> more_of_stages() {
  const StepConfig clipped{.gradient_accumulation = kMicroBatches, .clip_grad_norm = 0.5};
  std::vector<Case> all = of_stages();
  for (const std::string& optimizer : every_optimizer()) {
    all.push_back({"Optimizer_" + in_a_name(optimizer), mlp, optimizer, clipped});
  }
  for (const auto& [name, wrappers] : optim::every_wrapping()) {
    if (!name.empty()) all.push_back({name, mlp, "adamw", clipped, false, true, wrappers});
  }
  return all;
}

std::vector<Case> of_three_axes() {
  const StepConfig clipped{.gradient_accumulation = kMicroBatches, .clip_grad_norm = 0.5};
  return {{"Gpt", gpt, "adamw", clipped, true}, {"Vit", vit, "sgd momentum=0.9", clipped}};
}

std::vector<Case> more_of_three_axes() {
  std::vector<Case> all = of_three_axes();
  const StepConfig plain{.gradient_accumulation = kMicroBatches};
  all.push_back({"Llama", llama, "adamw", plain, true});
  all.push_back({"FrozenGpt", frozen_gpt, "adamw", plain, true});
  all.push_back({"GptEma", gpt, "adamw", plain, true, true, "[{ema: {decay: 0.9}}]"});
  all.push_back(compiled_gpt());
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

// Weights and state of training that goes on in another layout after each step.
NamedTensors train_in_layouts(Case tested, const std::vector<Layout>& layouts,
                              const Batches& batches) {
  NamedTensors weights, state;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Layout& layout = layouts[i % layouts.size()];
    tested.strategy = layout.strategy;
    run_on_one_core_each(layout.size, [&](parallel::Collectives& collectives) {
      Trainee trainee(tested, std::nullopt, &collectives);
      const auto own_weights = logical_weights(trainee);
      const bool is_first = collectives.rank() == 0;
      if (i > 0) {
        scatter_from_rank0(collectives, is_first ? weights : NamedTensors(), own_weights);
        scatter_from_rank0(collectives, is_first ? state : NamedTensors(),
                           trainee.optimizer->logical_state());
        // Each process gets all of it back, from its own replica.
        const NamedTensors again = gathered(collectives, trainee.optimizer->logical_state(),
                                            static_cast<size_t>(layout.size));
        expect_equal(again, state);
        parallel::any_of(collectives, false);
      }
      const auto& [input, target] = batches[i];
      trainee.step->run(part_of(labeled(input, target), trainee.strategy.get()),
                        static_cast<int64_t>(i), 0.01, false, {}, {.rows = input.size(0)});
      trainee.optimizer->use_averaged_weights(true);
      const NamedTensors now_weights = gathered(collectives, own_weights);
      const NamedTensors now = gathered(collectives, trainee.optimizer->logical_state());
      if (is_first) {
        weights = now_weights;
        state = now;
      }
      trainee.optimizer->use_averaged_weights(false);
      parallel::any_of(collectives, false);
    });
  }
  for (const auto& one : state) weights.push_back(one);
  return weights;
}

TEST(MeshState, LoadsIntoAnyLayout) {
  const Case tested{"Gpt", gpt, "adamw eps=1e-4", {.gradient_accumulation = kMicroBatches}, true};
  const auto without_dropout = [] {
    return make_gpt({.layers = 4, .width = 48, .heads = 6}, kText, 1);
  };
  Case exact = tested;
  exact.make_model = without_dropout;
  Batches batches;
  for (int i = 0; i < 6; ++i) batches.push_back(batch_of(tested, 8));
  const NamedTensors wanted = train_in_layouts(exact, {{1, "ddp"}}, batches);
  const NamedTensors got = train_in_layouts(exact,
                                            {{4, tensor(2, {kZero1})},
                                             {6, tensor(3)},
                                             {4, pipeline({kZero1})},
                                             {8, pipeline({kParts, kZero1})},
                                             {2, "zero-1"},
                                             {6, tensor(2, {kZero2})}},
                                            batches);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got[i].name, wanted[i].name);
    EXPECT_LE(at::sub(got[i].tensor, wanted[i].tensor).to(at::kDouble).norm().item<double>(),
              1e-4 * std::max(1.0, wanted[i].tensor.to(at::kDouble).norm().item<double>()))
        << wanted[i].name;
  }
}

// By the formulas of docs/parallel.md, within 3 percent.
TEST(MeshMemory, IsDividedByAllAxes) {
  Case tested{
      "Gpt",
      [] { return make_gpt({.layers = 4, .width = 128, .heads = 4, .tied = false}, kText, 1); },
      "adamw",
      {.gradient_accumulation = kMicroBatches},
      true};
  const auto bytes_in = [&](const Layout& layout) {
    tested.strategy = layout.strategy;
    std::vector<double> bytes(static_cast<size_t>(layout.size));
    run_on_one_core_each(layout.size, [&](parallel::Collectives& collectives) {
      const Trainee trainee(tested, std::nullopt, &collectives);
      bytes[static_cast<size_t>(collectives.rank())] =
          static_cast<double>(bytes_of(trainee.optimizer->state()));
      parallel::any_of(collectives, false);
    });
    return bytes;
  };
  const double whole = bytes_in({1, "ddp"}).front();
  for (const Layout& layout :
       {Layout{4, tensor(2, {kZero1})}, {4, pipeline({kZero1})}, {8, pipeline({kParts, kZero1})}}) {
    for (const double bytes : bytes_in(layout)) {
      EXPECT_NEAR(bytes * layout.size / whole, 1, 0.03) << layout.strategy;
    }
  }
}

TEST(MeshRejects, WhatItCannotTrain) {
  const auto one = [](const std::string& optimizer, const StepConfig& config,
                      const std::string& strategy) {
    return error_of([&] {
      Case tested{"Case", gpt, optimizer, config, true};
      tested.strategy = strategy;
      parallel::run_ranks(4, [&](parallel::Collectives& four) { Trainee(tested, {}, &four); });
    });
  };
  EXPECT_TRUE(one("sgd", {.sam = 0.05}, tensor(2, {kZero1}))
                  .starts_with("train.sam with parallel.data_parallel=zero-1: "));
  EXPECT_TRUE(one("sgd", {.clip_adaptive = 0.01}, pipeline({kZero1}))
                  .starts_with("train.clip_adaptive with parallel.data_parallel=zero-1: "));
  EXPECT_TRUE(one("muon", {}, tensor(2, {kZero1})).starts_with("parallel.name=tensor divides "));
  EXPECT_TRUE(
      one("muon", {}, pipeline({kParts})).starts_with("parallel.tensor_parallel_degree divides "));
  EXPECT_TRUE(one("sgd", {.clip_adaptive = 0.01}, pipeline({kParts}))
                  .starts_with("train.clip_adaptive with parallel.tensor_parallel_degree: "));
  EXPECT_EQ(one("sgd", {}, "pipeline pipeline_parallel_degree=3 tensor_parallel_degree=2"),
            "parallel.pipeline_parallel_degree is 3, which does not divide 2 (4 processes / "
            "parallel.tensor_parallel_degree=2); set it to 2, or start 6 processes");
}

INSTANTIATE_TEST_SUITE_P(Usual, TensorShards, testing::ValuesIn(of_layers()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, TensorShardsInMoreWays, testing::ValuesIn(more_of_layers()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Usual, PipelineShards, testing::ValuesIn(of_stages()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, PipelineShardsInMoreWays, testing::ValuesIn(more_of_stages()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Usual, ThreeAxes, testing::ValuesIn(of_three_axes()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, ThreeAxesInMoreWays, testing::ValuesIn(more_of_three_axes()),
                         name_of);

}  // namespace
}  // namespace gallop::train
