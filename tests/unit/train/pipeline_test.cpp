// Steps in a pipeline next to those of one process with the same micro-batches: the same bits of
// losses, norms, weights and states.
#include <array>
#include <functional>
#include <set>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "gallop/config/node.h"
#include "gallop/model/airbench.h"
#include "gallop/model/frozen.h"
#include "gallop/model/gpt.h"
#include "gallop/model/layers_model.h"
#include "gallop/model/mixer.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/parallel/pipeline_schedule.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"
#include "gallop/train/step/step.h"
#include "unit/base/error_of.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

// As many blocks as eight stages need.
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 8, .width = 16, .heads = 2, .dropout = 0.1}, kText, 1);
}
std::unique_ptr<model::Model> untied_gpt() {
  return make_gpt({.layers = 8, .width = 16, .heads = 2, .stochastic_depth = 0.2, .tied = false},
                  kText, 1);
}
std::unique_ptr<model::Model> mlp() {
  return make_mlp({.hidden = {24, 24, 24, 24, 20, 20, 20, 20}, .dropout = 0.1}, kImages, 1);
}
std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 20}, kImages, 1); }
std::unique_ptr<model::Model> vit() {
  return make_vit({.patch = 4, .width = 16, .depth = 8, .heads = 2, .dropout = 0.1}, kImages, 1);
}
std::unique_ptr<model::Model> mixer() {
  return make_mixer({.patch = 4, .width = 16, .depth = 8}, kImages, 1);
}

std::unique_ptr<model::Model> recomputed(std::unique_ptr<model::Model> model) {
  model->recompute(std::vector<bool>(static_cast<size_t>(model->blocks()), true));
  return model;
}

// The first stages have no weights to train, or the last ones.
std::unique_ptr<model::Model> frozen_start() {
  return freeze(mlp(), {"layers.0.*", "layers.1.*", "layers.2.*", "layers.3.*", "layers.4.*"});
}
std::unique_ptr<model::Model> frozen_end() {
  return freeze(mlp(), {"layers.5.*", "layers.6.*", "layers.7.*", "layers.8.*"});
}
std::unique_ptr<model::Model> frozen_embedding() { return freeze(gpt(), {"transformer.wte.*"}); }

// Some of its stages consist of layers without weights.
std::unique_ptr<model::Model> layers() {
  static const model::ModelRegistry kModels = model::built_in_models();
  model::LayersConfig config(kModels);
  config::Problems problems;
  const config::Node node = config::parse_yaml(
      "layers: [{conv: 8}, {max-pool: 2}, {conv: 8}, {dropout: 0.2}, {conv: 8}, batch-norm, "
      "global-avg-pool, linear]",
      "r.yaml");
  config::read_fields(
      node, [&config](config::Visitor& visitor) { visit(visitor, config); }, problems);
  EXPECT_TRUE(problems.empty());
  return make_layers(config, kImages, 1);
}

// The third batch has fewer samples than micro-batches.
constexpr int64_t kRows[] = {13, 12, 3, 12};
constexpr int64_t kMicroBatches = 8;

struct Results {
  std::vector<StepResult> steps;
  NamedTensors weights, state;  // The state of rank 0 is that of all.
};

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

Batches batches_of(const Case& tested) {
  Batches batches;
  for (const int64_t rows : kRows) {
    batches.push_back(batch_of(tested, rows));
    // Micro-batches with different numbers of targets that count.
    if (tested.text) batches.back().second.slice(0, 0, 2).slice(1, 2).fill_(-100);
  }
  return batches;
}

Results train(const Case& tested, bool compiled, const Batches& batches,
              parallel::Collectives* collectives) {
  std::optional<compile::CompileConfig> compile;
  if (compiled) compile.emplace().passes_off = compile::names_of_rounding_passes();
  Trainee trainee(tested, compile, collectives);
  Results results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto [input, target] = batches[i];
    const NamedTensors own = part_of(labeled(input, target), trainee.strategy.get());
    results.steps.push_back(trainee.step->run(own, static_cast<int64_t>(i), 0.01, i % 2 == 0, {},
                                              {.rows = input.size(0)}));
  }
  if (const auto* const report = trainee.step->compile_report()) {
    EXPECT_EQ(report->replayed, std::ssize(batches));
    EXPECT_TRUE(report->reasons.empty()) << report->reasons.front();
  }
  // What a checkpoint has.
  trainee.optimizer->use_averaged_weights(true);
  results.weights = copies_of(trainee.model->parameters());
  for (const auto& buffer : copies_of(trainee.model->buffers())) results.weights.push_back(buffer);
  results.state = collectives == nullptr
                      ? copies_of(trainee.optimizer->state())
                      : gathered(*collectives, trainee.optimizer->logical_state());
  trainee.optimizer->use_averaged_weights(false);
  // The groups of an axis are left when none is in use.
  if (collectives != nullptr) parallel::any_of(*collectives, false);
  return results;
}

Results of_rank0(const Case& tested, const Batches& batches, int size) {
  Results first;
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    Results own = train(tested, /*compiled=*/false, batches, &collectives);
    if (collectives.rank() == 0) first = std::move(own);
  });
  return first;
}

void expect_bits(const Results& got, const Results& wanted) {
  for (size_t i = 0; i < wanted.steps.size(); ++i) {
    EXPECT_EQ(got.steps[i].tally.loss_sum, wanted.steps[i].tally.loss_sum) << i;
    EXPECT_EQ(got.steps[i].tally.count, wanted.steps[i].tally.count) << i;
    EXPECT_EQ(got.steps[i].tally.top1, wanted.steps[i].tally.top1) << i;
    EXPECT_EQ(got.steps[i].gradient_norm, wanted.steps[i].gradient_norm) << i;
  }
  expect_equal(got.weights, wanted.weights);
}

// Two pipelines, each with its part of every batch, next to two processes that have the whole
// model.
void expect_bits_of_ddp(Case tested, int degree, const std::vector<std::string>& schedules,
                        bool compiled = false) {
  tested.config.gradient_accumulation = kMicroBatches;
  Batches batches = batches_of(tested);
  batches.push_back(batch_of(tested, 1));  // Nothing for the first pipeline.
  batches.push_back(batch_of(tested, 12));
  tested.strategy = "ddp";
  const Results two = of_rank0(tested, batches, 2);
  for (const std::string& schedule : schedules) {
    SCOPED_TRACE(schedule);
    tested.strategy =
        fmt::format("pipeline schedule={} pipeline_parallel_degree={}", schedule, degree);
    std::vector<Results> all(static_cast<size_t>(2 * degree));
    run_on_one_core_each(2 * degree, [&](parallel::Collectives& collectives) {
      all[static_cast<size_t>(collectives.rank())] = train(tested, compiled, batches, &collectives);
    });
    for (const Results& rank : all) expect_bits(rank, two);
    expect_equal(all.front().state, two.state);
  }
}

void expect_bits_of_one_process(Case tested, const std::vector<int>& sizes,
                                const std::vector<std::string>& schedules, bool compiled = false) {
  tested.config.gradient_accumulation = kMicroBatches;
  const Batches batches = batches_of(tested);
  Results one;
  {
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    one = train(tested, /*compiled=*/false, batches, nullptr);
    at::set_num_threads(threads);
  }
  for (const int size : sizes) {
    for (const std::string& schedule : schedules) {
      SCOPED_TRACE(fmt::format("{} processes, {}", size, schedule));
      tested.strategy = "pipeline schedule=" + schedule;
      std::vector<Results> all(static_cast<size_t>(size));
      run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
        all[static_cast<size_t>(collectives.rank())] =
            train(tested, compiled, batches, &collectives);
      });
      for (const Results& rank : all) expect_bits(rank, one);
      expect_equal(all.front().state, one.state);
    }
  }
}

std::vector<std::string> every_schedule() {
  std::vector<std::string> names;
  for (const auto& kind : parallel::pipeline_schedules()) names.emplace_back(kind.name);
  return names;
}

class Pipeline : public testing::TestWithParam<Case> {};
class PipelineReplicas : public testing::TestWithParam<Case> {};
class CompiledPipeline : public testing::TestWithParam<Case> {};
class CompiledPipelineInMoreWays : public testing::TestWithParam<Case> {};
class PipelineOptions : public testing::TestWithParam<Case> {};
class PipelineInMoreWays : public testing::TestWithParam<Case> {};

TEST_P(Pipeline, HasTheBitsOfOneProcess) {
  expect_bits_of_one_process(GetParam(), {2}, {"1f1b"});
  expect_bits_of_one_process(GetParam(), {3}, {"zbv"});
}
TEST_P(PipelineReplicas, HaveTheBitsOfDdp) { expect_bits_of_ddp(GetParam(), 2, {"1f1b"}); }
// Without the passes that change rounding.
TEST_P(CompiledPipeline, HasTheBitsOfTheEagerStep) {
  expect_bits_of_one_process(GetParam(), {2}, {"1f1b"}, /*compiled=*/true);
}
TEST_P(CompiledPipelineInMoreWays, HasTheBitsOfTheEagerStep) {
  expect_bits_of_one_process(GetParam(), {2, 3}, every_schedule(), /*compiled=*/true);
  expect_bits_of_ddp(GetParam(), 2, {"1f1b", "zbv"}, /*compiled=*/true);
}
TEST_P(PipelineInMoreWays, HasTheBitsOfDdpInReplicas) {
  expect_bits_of_ddp(GetParam(), 2, every_schedule());
  expect_bits_of_ddp(GetParam(), 4, {"1f1b", "zbv"});
}
TEST_P(PipelineOptions, HaveTheBitsOfOneProcess) {
  expect_bits_of_one_process(GetParam(), {2}, {"1f1b"});
}
TEST_P(PipelineInMoreWays, HasTheBitsOfOneProcess) {
  expect_bits_of_one_process(GetParam(), {2, 3, 4}, every_schedule());
}

Case on_mlp(const std::string& optimizer) {
  return {"Optimizer_" + in_a_name(optimizer), mlp, optimizer, {.clip_grad_norm = 0.1}};
}

std::vector<Case> models() {
  return {{"Gpt", gpt, "adamw", {.clip_grad_norm = 0.1}, true},
          {"UntiedGpt", untied_gpt, "adamw", {}, true},
          {"Mlp", mlp, "sgd momentum=0.9", {}},
          {"Resnet", resnet, "sgd momentum=0.9", {.clip_grad_norm = 1}},
          {"Vit", vit, "adamw", {.clip_value = 0.01}},
          {"Mixer", mixer, "lion", {}},
          {"Layers", layers, "adamw", {.clip_grad_norm = 0.1}},
          {"RecomputedGpt", [] { return recomputed(gpt()); }, "adamw", {}, true},
          {"RecomputedResnet", [] { return recomputed(resnet()); }, "adamw", {}},
          {"FrozenStart", frozen_start, "adamw", {.clip_grad_norm = 0.1}},
          {"FrozenEnd", frozen_end, "adamw", {}},
          {"FrozenEmbedding", frozen_embedding, "adamw", {}, true}};
}

std::vector<Case> options() {
  std::vector<Case> all = {
      {"ResnetEma", resnet, "adamw", {}, false, true, "[{ema: {decay: 0.9}}]"},
      {"GptEma", gpt, "adamw", {}, true, true, "[{ema: {decay: 0.9}}]"},
      {"GptMuon", gpt, "muon", {.clip_grad_norm = 1}, true},
      {"ResnetContiguous", resnet, "adamw state_bits=8", {}, false, false},
      {"Fp16", mlp, "adamw", {.precision = Precision::kFp16, .clip_grad_norm = 1}},
      {"Bf16", untied_gpt, "adamw", {.precision = Precision::kBf16}, true},
      {"Bf16Weights", mlp, "adamw", {.precision = Precision::kBf16Weights}},
      {"Groups", mlp, "adamw layer_decay=0.5 weight_decay=0.1", {}},
      {"SkipNonfinite", mlp, "sgd momentum=0.9", {.skip_nonfinite = true}},
      {"ClipAdaptive", mlp, "sgd momentum=0.9", {.clip_adaptive = 0.01}}};
  for (const std::string& optimizer : every_optimizer()) all.push_back(on_mlp(optimizer));
  for (const auto& [name, wrappers] : optim::every_wrapping()) {
    if (!name.empty()) all.push_back({name, mlp, "adamw", {}, false, true, wrappers});
  }
  return all;
}

std::vector<Case> all() {
  std::vector<Case> all = models();
  for (Case& tested : options()) all.push_back(std::move(tested));
  return all;
}

std::vector<Case> compiled() {
  static const std::set<std::string> kNames = {"Gpt",  "Resnet", "Layers", "RecomputedGpt",
                                               "Fp16", "GptEma", "GptMuon"};
  std::vector<Case> cases = all();
  std::erase_if(cases, [](const Case& tested) { return !kNames.contains(tested.name); });
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

// Rows of several texts, whose positions each stage takes from the batch.
TEST(PipelineOfPackedRows, HasTheBitsOfOneProcess) {
  Case tested{"Gpt", gpt, "adamw", {.gradient_accumulation = 4, .clip_grad_norm = 0.1}, true};
  std::vector<NamedTensors> batches;
  for (const int64_t rows : {8, 7}) {
    const auto [input, target] = batch_of(tested, rows);
    NamedTensors batch = labeled(input, target);
    const at::Tensor ids = at::arange(8).repeat({rows, 1});
    ids.slice(0, 0, rows / 2).slice(1, 3).sub_(3);
    batch.push_back({model::kPositionIds, ids});
    batches.push_back(std::move(batch));
  }
  const auto train = [&](parallel::Collectives* collectives) {
    Trainee trainee(tested, std::nullopt, collectives);
    std::vector<double> numbers;
    for (size_t i = 0; i < batches.size(); ++i) {
      const StepResult result = trainee.step->run(batches[i], static_cast<int64_t>(i), 0.01, false,
                                                  {}, {.rows = batches[i].front().tensor.size(0)});
      numbers.insert(numbers.end(), {result.tally.loss_sum, result.gradient_norm});
    }
    return numbers;
  };
  std::vector<double> one;
  run_on_one_core_each(1, [&](parallel::Collectives&) { one = train(nullptr); });
  tested.strategy = "pipeline";
  run_on_one_core_each(
      2, [&](parallel::Collectives& collectives) { EXPECT_EQ(train(&collectives), one); });
}

// Training that goes on in another layout after each step.
TEST(PipelineState, LoadsIntoAnyLayout) {
  struct Layout {
    int size;
    const char* strategy;
  };
  for (Case tested : {Case{"Gpt", gpt, "adamw", {.clip_grad_norm = 0.1}, true},
                      Case{"Resnet", resnet, "adamw", {}, false, true, "[{ema: {decay: 0.9}}]"}}) {
    SCOPED_TRACE(tested.name);
    tested.config.gradient_accumulation = kMicroBatches;
    const Batches batches = batches_of(tested);
    const auto in_layouts = [&](const std::vector<Layout>& layouts) {
      NamedTensors weights, state;
      for (size_t i = 0; i < batches.size(); ++i) {
        const Layout& layout = layouts[i % layouts.size()];
        tested.strategy = layout.strategy;
        run_on_one_core_each(layout.size, [&](parallel::Collectives& collectives) {
          Trainee trainee(tested, std::nullopt, layout.size > 1 ? &collectives : nullptr);
          const auto tensors = [&] {
            NamedTensors all = trainee.model->parameters();
            for (const auto& one : trainee.model->buffers()) all.push_back(one);
            return all;
          };
          trainee.optimizer->use_averaged_weights(true);
          if (i > 0) {
            const at::NoGradGuard no_grad;
            for (const auto& [name, tensor] : tensors()) tensor.copy_(*find_tensor(weights, name));
            scatter_from_rank0(collectives, collectives.rank() == 0 ? state : NamedTensors(),
                               trainee.optimizer->logical_state());
          }
          trainee.optimizer->use_averaged_weights(false);
          trainee.step->run(labeled(batches[i].first, batches[i].second), static_cast<int64_t>(i),
                            0.01, false, {}, {.rows = batches[i].first.size(0)});
          trainee.optimizer->use_averaged_weights(true);
          const NamedTensors now = gathered(collectives, trainee.optimizer->logical_state());
          if (collectives.rank() == 0) {
            weights = copies_of(tensors());
            state = now;
          }
          trainee.optimizer->use_averaged_weights(false);
        });
      }
      for (const auto& one : state) weights.push_back(one);
      return weights;
    };
    const NamedTensors wanted = in_layouts({{1, "pipeline"}});
    expect_equal(in_layouts({{2, "pipeline schedule=gpipe"},
                             {4, "pipeline schedule=zbv"},
                             {1, "pipeline"},
                             {3, "pipeline schedule=interleaved-1f1b"}}),
                 wanted);
  }
}

TEST(PipelineMemory, IsThatOfTheOwnStages) {
  Case tested{"Gpt", untied_gpt, "adamw", {.gradient_accumulation = 4}, true};
  tested.strategy = "pipeline";
  int64_t whole = 0;
  std::array<int64_t, 2> states{};
  run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives);
    const auto [input, target] = batch_of(tested, 8);
    trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 8});
    const auto& own = trainee.strategy->pipeline()->parameters();
    for (const auto& [name, tensor] : trainee.model->parameters()) {
      EXPECT_EQ(tensor.grad().defined(), own.is_here(name)) << name;
    }
    states[static_cast<size_t>(collectives.rank())] = bytes_of(trainee.optimizer->state());
    if (collectives.rank() == 0) whole = bytes_of(wholes_of(trainee.optimizer->logical_state()));
  });
  // Counts of updates are in both.
  EXPECT_NEAR(static_cast<double>(states[0] + states[1]) / static_cast<double>(whole), 1, 0.02);
}

TEST(PipelineRejects, WhatItCannotTrain) {
  const auto one = [](const MakeModel& make, const StepConfig& config, const std::string& options) {
    return error_of([&] {
      Case tested{"Case", make, "sgd", config};
      tested.strategy = "pipeline" + options;
      parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(tested, {}, &two); });
    });
  };
  const auto shallow = [] { return make_mlp({.hidden = {8, 8}}, kImages, 1); };
  EXPECT_EQ(one(shallow, {}, ""), "");
  EXPECT_EQ(
      one(shallow, {}, " schedule=zbv"),
      "parallel.name=pipeline: 2 processes with 2 stages each need at least 4 blocks, and the "
      "model has 3; use a deeper model");
  const auto without_blocks = [] {
    return model::make_airbench({}, {.channels = 3, .height = 32, .width = 32, .classes = 5}, 1);
  };
  EXPECT_TRUE(one(without_blocks, {}, "")
                  .starts_with("parallel.name=pipeline cuts a model between its blocks, which this "
                               "model does not define"));
  EXPECT_TRUE(one(shallow, {.sam = 0.05}, "").starts_with("train.sam with parallel.name=pipeline"));
}

// Replicas send what they have to those that write and read.
TEST(PipelineState, LoadsIntoReplicas) {
  Case tested{"Gpt", gpt, "adamw", {.gradient_accumulation = kMicroBatches}, true};
  tested.strategy = "pipeline pipeline_parallel_degree=2";
  const auto [input, target] = batch_of(tested, 16);
  run_on_one_core_each(4, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives), other(tested, std::nullopt, &collectives);
    trainee.step->run(part_of(labeled(input, target), trainee.strategy.get()), 0, 0.01, false, {},
                      {.rows = 16});
    const auto state = trainee.optimizer->logical_state();
    // Each process gets all of it, from its own replica.
    const NamedTensors saved = gathered(collectives, state, 4);
    scatter_from_rank0(collectives, collectives.rank() == 0 ? saved : NamedTensors(),
                       other.optimizer->logical_state());
    expect_equal(other.optimizer->state(), trainee.optimizer->state());
    parallel::any_of(collectives, false);
  });
}

TEST(PipelineRejects, NumbersOfMicroBatches) {
  const auto one = [](const parallel::PipelineConfig& config, int processes, int64_t micro_batches,
                      int64_t rows) {
    return error_of([&] { parallel::check_pipeline(config, processes, micro_batches, rows); });
  };
  EXPECT_EQ(one({}, 2, 2, 2), "");
  EXPECT_EQ(one({}, 4, 1, 64),
            "parallel.name=pipeline with 4 processes and schedule=1f1b needs at least 4 "
            "micro-batches, and train.gradient_accumulation is 1; set it to 4, or to 16 for a "
            "smaller pipeline bubble");
  EXPECT_NE(one({.schedule = "dualpipev"}, 4, 1, 64).find("at least 8 micro-batches"),
            std::string::npos);
  EXPECT_TRUE(
      one({.schedule = "dualpipev"}, 4, 8, 6).ends_with("set data.batch_size to at least 8"));
  EXPECT_EQ(one({}, 2, 8, 6),
            "parallel.name=pipeline cuts batches into 8 micro-batches "
            "(train.gradient_accumulation), and data.batch_size is 6; set data.batch_size to at "
            "least 8, or train.gradient_accumulation to at most 6");
  EXPECT_EQ(one({.pipeline_parallel_degree = 2}, 6, 2, 6), "");
  EXPECT_EQ(one({.pipeline_parallel_degree = 2}, 6, 4, 11),
            "parallel.name=pipeline cuts batches into 4 micro-batches "
            "(train.gradient_accumulation) in each of 3 pipelines, and data.batch_size is 11; set "
            "data.batch_size to at least 12, or train.gradient_accumulation to at most 3");
  EXPECT_EQ(one({.pipeline_parallel_degree = 4}, 6, 4, 64),
            "parallel.pipeline_parallel_degree is 4, which does not divide the 6 processes; set it "
            "to 3 or 6, or start 4 or 8 processes");
  EXPECT_NE(
      one({.schedule = "interleaved-1f1b"}, 4, 9, 64).find("the nearest numbers are 8 and 10"),
      std::string::npos);
  EXPECT_TRUE(one({.schedule = "zbv", .stages_per_rank = 3}, 2, 8, 64)
                  .find("zbv has 2 stages on each rank, not 3") != std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Usual, Pipeline, testing::ValuesIn(models()), name_of);
INSTANTIATE_TEST_SUITE_P(
    Usual, PipelineReplicas,
    testing::ValuesIn(usual_by_name(models(), {"Gpt", "Resnet", "FrozenEmbedding"}).usual),
    name_of);
INSTANTIATE_TEST_SUITE_P(Long, PipelineInMoreWays, testing::ValuesIn(models()), name_of);
INSTANTIATE_TEST_SUITE_P(Usual, CompiledPipeline, testing::ValuesIn(compiled()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, CompiledPipelineInMoreWays, testing::ValuesIn(all()), name_of);
INSTANTIATE_TEST_SUITE_P(Usual, PipelineOptions, testing::ValuesIn(options()), name_of);

}  // namespace
}  // namespace gallop::train
