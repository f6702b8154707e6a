// Steps of zero-1, zero-2 and zero-3 next to those of ddp: the same bits of losses, norms, weights
// and states.
#include "gallop/parallel/zero.h"

#include <functional>
#include <mutex>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/optim/updated_parameters.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/shared_state.h"
#include "gallop/train/step/step.h"
#include "unit/base/error_of.h"
#include "unit/train/compared_ranks.h"
#include "unit/train/deep_gpt.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

// Layers large enough to be cut.
std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {96, 64}}, kImages, 1); }
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = 48, .heads = 2}, kText, 1);
}
std::unique_ptr<model::Model> experts() { return gpt_of_experts({.num_experts = 4}); }
std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 8}, kImages, 1); }
std::unique_ptr<model::Model> frozen() {
  auto model = mlp();
  const NamedTensors parameters = model->parameters();
  for (const size_t i : {0, 1}) parameters[i].tensor.set_requires_grad(false);
  return model;
}

constexpr int64_t kRows[] = {13, 12, 3, 12};

struct Results {
  std::vector<StepResult> steps;
  NamedTensors weights, state;  // The state of rank 0 is that of all.
};

NamedTensors whole_state(const Trainee& trainee, parallel::Collectives& collectives) {
  return gathered(collectives, trainee.optimizer->logical_state());
}

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

Results train(const Case& tested, bool compiled, const Batches& batches,
              parallel::Collectives& collectives) {
  const auto compile = compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  Trainee trainee(tested, compile, &collectives);
  Results results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const int64_t all = kRows[i], size = collectives.size(), rank = collectives.rank();
    const auto [input, target] = batches[i];
    const int64_t begin = all * rank / size, end = all * (rank + 1) / size;
    results.steps.push_back(
        trainee.step->run(labeled(input.slice(0, begin, end), target.slice(0, begin, end)),
                          static_cast<int64_t>(i), 0.01, i % 2 == 0, {}, {.rows = all}));
  }
  if (compiled) {
    EXPECT_TRUE(trainee.step->compile_report()->reasons.empty())
        << trainee.step->compile_report()->reasons.front();
  }
  // What a checkpoint has.
  if (trainee.strategy) trainee.strategy->gather_parameters();
  trainee.optimizer->use_averaged_weights(true);
  results.weights = copies_of(trainee.model->parameters());
  for (const auto& buffer : copies_of(trainee.model->buffers())) results.weights.push_back(buffer);
  results.state = whole_state(trainee, collectives);
  trainee.optimizer->use_averaged_weights(false);
  for (const auto& trained : copies_of(trainee.model->parameters())) {
    results.weights.push_back(trained);
  }
  return results;
}

std::vector<Results> train_ranks(int size, Case tested, const std::string& strategy, bool compiled,
                                 const Batches& batches) {
  tested.strategy = strategy;
  std::vector<Results> all(static_cast<size_t>(size));
  run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
    all[static_cast<size_t>(collectives.rank())] = train(tested, compiled, batches, collectives);
  });
  return all;
}

constexpr const char *kZero1 = "zero-1 bucket=64KiB", *kZero2 = "zero-2 bucket=16KiB",
                     *kZero3 = "zero-3 bucket=16KiB";

struct Setting {
  int size;
  bool compiled;
  const char* ddp;
  std::vector<const char*> strategies;
};

void expect_bits_of_ddp(const Case& tested, const std::vector<Setting>& runs) {
  Batches batches;
  for (const int64_t rows : kRows) batches.push_back(batch_of(tested, rows));
  for (const Setting& run : runs) {
    SCOPED_TRACE(testing::Message()
                 << run.size << " processes" << (run.compiled ? ", compiled" : ""));
    const auto ddp = train_ranks(run.size, tested, run.ddp, run.compiled, batches);
    for (const char* strategy : run.strategies) {
      // The others add up micro-batches in another order; see ZeroAccumulation.
      if (tested.config.gradient_accumulation > 1 && strategy != kZero1) continue;
      SCOPED_TRACE(strategy);
      const auto zero = train_ranks(run.size, tested, strategy, run.compiled, batches);
      for (const Results& one : zero) {
        for (size_t i = 0; i < one.steps.size(); ++i) {
          EXPECT_EQ(one.steps[i].tally.loss_sum, ddp.front().steps[i].tally.loss_sum) << i;
          EXPECT_EQ(one.steps[i].gradient_norm, ddp.front().steps[i].gradient_norm) << i;
        }
        expect_equal(one.weights, ddp.front().weights);
      }
      expect_equal(zero.front().state, ddp.front().state);
    }
  }
}

class Zero : public testing::TestWithParam<Case> {};
class ZeroInMoreWays : public testing::TestWithParam<Case> {};

// With two processes ddp sums in the only order there is.
TEST_P(Zero, HasTheBitsOfDdp) {
  expect_bits_of_ddp(GetParam(), {{2, true, "ddp", {kZero1, kZero3}},
                                  {3, false, "ddp sum_order=rank", {kZero2, kZero3}}});
}

TEST_P(ZeroInMoreWays, HasTheBitsOfDdp) {
  std::vector<Setting> runs;
  for (const int size : {2, 3, 4}) {
    for (const bool compiled : {false, true}) {
      runs.push_back(
          {size, compiled, size == 2 ? "ddp" : "ddp sum_order=rank", {kZero1, kZero2, kZero3}});
    }
  }
  expect_bits_of_ddp(GetParam(), runs);
}

Case on_mlp(const std::string& kind, const std::string& optimizer, Precision precision) {
  return {kind + in_a_name(optimizer), mlp, optimizer, {.precision = precision}};
}

std::vector<Case> models_and_options() {
  return {
      {"Gpt", gpt, "adamw", {.clip_grad_norm = 0.1}, true},
      {"GptMuonAccumulated", gpt, "muon", {.gradient_accumulation = 2, .clip_grad_norm = 1}, true},
      {"GptExperts", experts, "adamw", {.clip_grad_norm = 0.1}, true},
      {"GptExpertsMuon", experts, "muon", {.precision = Precision::kBf16}, true},
      {"GptBf16", gpt, "adamw", {.precision = Precision::kBf16}, true},
      {"Resnet", resnet, "adamw state_bits=8", {.clip_value = 0.01}},
      {"ResnetMuon", resnet, "muon"},
      {"ResnetEma", resnet, "adamw", {}, false, true, "[{ema: {decay: 0.9}}]"},
      {"Frozen", frozen, "adamw", {.clip_grad_norm = 0.1}},
      {"Fp16", mlp, "adamw", {.precision = Precision::kFp16, .clip_grad_norm = 1}},
      {"Counted", mlp, "adamw", {.gradient_accumulation = 2, .every_target_counts = true}},
      {"Groups", mlp, "adamw layer_decay=0.5 weight_decay=0.1", {}},
      {"ScheduledMomentum", mlp, "sgd momentum=0.9", {.skip_nonfinite = true}}};
}

std::vector<Case> cases() {
  std::vector<Case> all = models_and_options();
  for (const char* optimizer : {"adafactor", "lamb", "lars", "lion"}) {
    all.push_back(on_mlp("Optimizer_", optimizer, Precision::kFp32));
  }
  for (const char* optimizer : {"adamw rounding=kahan", "lamb rounding=nearest"}) {
    all.push_back(on_mlp("Bf16Weights_", optimizer, Precision::kBf16Weights));
  }
  return all;
}

// With every optimizer and wrapper.
std::vector<Case> all_cases() {
  std::vector<Case> all = models_and_options();
  for (const std::string& optimizer : every_optimizer()) {
    all.push_back(on_mlp("Optimizer_", optimizer, Precision::kFp32));
  }
  for (const std::string& optimizer : every_rounding_optimizer()) {
    all.push_back(on_mlp("Bf16Weights_", optimizer, Precision::kBf16Weights));
  }
  for (const auto& [name, wrappers] : optim::every_wrapping()) {
    if (!name.empty()) all.push_back({name, mlp, "adamw", {}, false, true, wrappers});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Usual, Zero, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, ZeroInMoreWays, testing::ValuesIn(all_cases()), name_of);

// Two replicas of two shards, and three of two.
TEST(ZeroHybrid, HasTheBitsOfDdp) {
  constexpr const char* kHybrid = "zero-3 data_parallel_shard_degree=2 bucket=16KiB";
  for (const Case& tested :
       {Case{"Gpt", gpt, "adamw", {.clip_grad_norm = 0.1}, true},
        Case{"ResnetEma", resnet, "adamw", {}, false, true, "[{ema: {decay: 0.9}}]"},
        Case{"Frozen", frozen, "muon", {.clip_grad_norm = 0.1}}}) {
    SCOPED_TRACE(tested.name);
    expect_bits_of_ddp(tested, {{4, true, "ddp sum_order=rank", {kHybrid}},
                                {6, false, "ddp sum_order=rank", {kHybrid}}});
  }
}

TEST(ZeroHybrid, KeepsAShardOfTheParametersAndLessOfTheRest) {
  Case tested{"Gpt", deep_gpt, "adamw", {}, true};
  tested.strategy = "zero-3 data_parallel_shard_degree=2";
  parallel::run_ranks_together(6, [&](parallel::Collectives& collectives) {
    const Trainee trainee(tested, std::nullopt, &collectives);
    const auto& shards = *trainee.strategy->shards();
    const auto share = [](const parallel::ParameterShards::Bytes& bytes) {
      return static_cast<double>(bytes.here) / static_cast<double>(bytes.all);
    };
    EXPECT_NEAR(share(shards.parameter_bytes()), 1.0 / 2, 0.1);
    EXPECT_NEAR(share(shards.gradient_bytes()), 1.0 / 6, 0.1);
    EXPECT_EQ(trainee.strategy->describe(), "dp_replicate 3 x dp_shard 2");
  });
}

// Each process reads only its part, which the replicas then get from it.
TEST(ZeroHybrid, LoadsParametersFromTheirParts) {
  Case tested{"Gpt", gpt, "adamw", {}, true};
  tested.strategy = "zero-3 data_parallel_shard_degree=2 bucket=16KiB";
  run_on_one_core_each(4, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives);
    NamedTensors other = copies_of(gpt()->parameters());
    for (const auto& [name, tensor] : other) tensor.mul_(2);
    trainee.strategy->release_parameters();
    scatter_from_rank0(collectives, collectives.rank() == 0 ? other : NamedTensors(),
                       trainee.strategy->parameters_in_parts());
    trainee.strategy->parameters_replaced();
    trainee.strategy->gather_parameters();
    expect_equal(copies_of(trainee.model->parameters()), other);
  });
}

// Steps that repeat after the state went through whole tensors into another number of processes.
TEST(ZeroState, LoadsIntoAnyNumberOfProcesses) {
  for (const auto& [make, optimizer] :
       std::vector<std::pair<MakeModel, const char*>>{{mlp, "adamw state_bits=8"},
                                                      {mlp, "lamb"},
                                                      {resnet, "adamw state_bits=8"},
                                                      {resnet, "muon"},
                                                      {resnet, "adafactor"}}) {
    Case tested{"State", make, optimizer};
    NamedTensors whole;
    for (const int size : {2, 3, 4}) {
      tested.strategy = size == 3 ? "zero-2" : "zero-1";
      parallel::run_ranks_together(size, [&](parallel::Collectives& collectives) {
        Trainee trainee(tested, std::nullopt, &collectives);
        const auto logical = trainee.optimizer->logical_state();
        if (whole.empty()) {
          // Numbers that tell where they belong.
          double number = 1;
          for (const LogicalTensor& tensor : logical) {
            if (tensor.local.defined()) tensor.local.fill_(number);
            number += 1;
            if (tensor.local.defined() && tensor.local.numel() > 0 && !tensor.is_replicated()) {
              tensor.local.as_strided({1}, {1}).fill_(100 + collectives.rank());
            }
          }
        } else {
          scatter_from_rank0(collectives, collectives.rank() == 0 ? whole : NamedTensors(),
                             logical);
        }
        const NamedTensors now = gathered(collectives, logical);
        if (collectives.rank() != 0) return;
        if (!whole.empty()) expect_equal(now, whole);
        if (size == 2) whole = now;
      });
    }
  }
}

TEST(ZeroState, IsAShareOfTheWhole) {
  Case tested{"Gpt",
              [] { return make_gpt({.layers = 4, .width = 128, .heads = 2}, kText, 1); },
              "adamw",
              {},
              true};
  tested.strategy = "zero-2";
  for (const int size : {2, 3, 4}) {
    parallel::run_ranks_together(size, [&](parallel::Collectives& collectives) {
      const Trainee trainee(tested, std::nullopt, &collectives);
      const auto logical = trainee.optimizer->logical_state();
      const double share = static_cast<double>(bytes_of(trainee.optimizer->state())) /
                           static_cast<double>(bytes_of(wholes_of(logical)));
      EXPECT_NEAR(share * size, 1, 0.03) << size << " processes";
      // What a step keeps: the sums of this process's part of the gradients, and little else.
      NamedTensors kept = trainee.strategy->state();
      std::erase_if(kept,
                    [](const NamedTensor& one) { return one.name.starts_with("parameters."); });
      const double of_gradients = static_cast<double>(bytes_of(kept)) /
                                  static_cast<double>(bytes_of(trainee.model->parameters()));
      EXPECT_NEAR(of_gradients * size, 1, 0.03) << size << " processes";
    });
  }
}

// The gradients of this process's parts, as they lie in whole parameters.
NamedTensors parts_of(const NamedTensors& gradients, const parallel::ParameterShards& shards,
                      int rank) {
  NamedTensors parts;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto part = shards.layout().part_of(i, rank);
    const at::Tensor& whole = gradients[i].tensor;
    parts.push_back(
        {gradients[i].name, whole.as_strided({whole.numel()}, {1}).slice(0, part.begin, part.end)});
  }
  return parts;
}

// Gradients of two micro-batches in each process are those of each micro-batch in all processes,
// which ddp sums in the order of ranks, added up.
TEST(ZeroAccumulation, AddsMicroBatchesToTheSumsOverProcesses) {
  constexpr int64_t kMicroBatches = 2, kEach = 4;
  const Case like{"Mlp", mlp, "sgd", {}, false, false};
  for (const int size : {2, 3}) {
    for (const bool compiled : {false, true}) {
      const auto [input, target] = batch_of(like, size * kMicroBatches * kEach);
      const auto rows_of = [&](int rank, int64_t micro_batch, int64_t count) {
        const int64_t begin = (rank * kMicroBatches + micro_batch) * kEach;
        return labeled(input.slice(0, begin, begin + count * kEach),
                       target.slice(0, begin, begin + count * kEach));
      };
      run_on_one_core_each(size, [&](parallel::Collectives& collectives) {
        const int rank = collectives.rank();
        Case ddp = like, zero = like;
        ddp.strategy = "ddp sum_order=rank";
        zero.strategy = "zero-2 bucket=16KiB";
        zero.config.gradient_accumulation = kMicroBatches;
        Trainee each(ddp, std::nullopt, &collectives);
        NamedTensors sums;
        for (int64_t i = 0; i < kMicroBatches; ++i) {
          each.step->run(rows_of(rank, i, 1), 0, 0.0, false, {}, {.rows = size * kEach});
          const NamedTensors parameters = each.model->parameters();
          for (size_t k = 0; k < parameters.size(); ++k) {
            // The mean of half as many samples; halving is exact.
            const at::Tensor gradient = parameters[k].tensor.grad() / kMicroBatches;
            if (i == 0) {
              sums.push_back({parameters[k].name, gradient});
            } else {
              sums[k].tensor.add_(gradient);
            }
          }
        }
        Trainee all(zero, compiled ? std::optional(compile::CompileConfig()) : std::nullopt,
                    &collectives);
        for (int64_t step = 0; step < 2; ++step) {
          all.step->run(rows_of(rank, 0, kMicroBatches), step, 0.0, false, {},
                        {.rows = size * kMicroBatches * kEach});
        }
        const auto& shards = *all.strategy->shards();
        const NamedTensors wanted = parts_of(sums, shards, rank);
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_TRUE(at::equal(shards.tensors()[i].tensor.grad().reshape({-1}), wanted[i].tensor))
              << wanted[i].name << ", rank " << rank << (compiled ? ", compiled" : "");
        }
      });
    }
  }
}

// Processes with fewer samples than micro-batches, or without any.
TEST(ZeroAccumulation, IsThatOfDdpButForRounding) {
  for (const auto& [make, compiled] : std::vector<std::pair<MakeModel, bool>>{
           {mlp, false}, {mlp, true}, {resnet, false}, {resnet, true}}) {
    const Case tested{
        "Case", make, "sgd momentum=0.9", {.gradient_accumulation = 3, .clip_grad_norm = 0.1}};
    Batches batches;
    for (const int64_t rows : kRows) batches.push_back(batch_of(tested, rows));
    const auto ddp = train_ranks(4, tested, "ddp", compiled, batches).front();
    const auto zero = train_ranks(4, tested, kZero2, compiled, batches).front();
    const auto sharded = train_ranks(4, tested, kZero3, compiled, batches).front();
    expect_equal(sharded.weights, zero.weights);
    for (size_t i = 0; i < ddp.weights.size(); ++i) {
      const double apart =
          (zero.weights[i].tensor - ddp.weights[i].tensor).abs().max().item<double>();
      EXPECT_LT(apart, 1e-5) << ddp.weights[i].name;
    }
    for (size_t i = 0; i < ddp.steps.size(); ++i) {
      EXPECT_NEAR(zero.steps[i].gradient_norm / ddp.steps[i].gradient_norm, 1, 1e-5);
    }
  }
}

TEST(ZeroGradients, AreThoseOfTheOwnPartsAfterAStep) {
  const Case like{"Mlp", mlp, "adamw", {}, false, false};
  run_on_one_core_each(2, [&](parallel::Collectives& collectives) {
    Case tested = like;
    tested.strategy = "zero-2 bucket=16KiB";
    Trainee trainee(tested, std::nullopt, &collectives);
    const auto [input, target] = batch_of(tested, 4);
    trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 8});
    for (const auto& [name, tensor] : trainee.model->parameters()) {
      EXPECT_FALSE(tensor.grad().defined()) << name;
    }
    const auto bytes = trainee.strategy->shards()->gradient_bytes();
    EXPECT_EQ(bytes.all, bytes_of(trainee.model->parameters()));
    EXPECT_NEAR(static_cast<double>(bytes.here) / static_cast<double>(bytes.all), 0.5, 0.1);
  });
}

TEST(ZeroParameters, HaveTheSameBitsHoweverTheyAreGathered) {
  Case tested{"Gpt", deep_gpt, "adamw", {.clip_grad_norm = 0.1}, true};
  Batches batches;
  for (const int64_t rows : kRows) batches.push_back(batch_of(tested, rows));
  Case recomputed = tested;
  recomputed.make_model = [] {
    auto model = deep_gpt();
    model->recompute(std::vector<bool>(8, true));
    return model;
  };
  for (const bool compiled : {false, true}) {
    const auto ddp = train_ranks(2, tested, "ddp", compiled, batches).front();
    const auto kept =
        train_ranks(2, tested, "zero-3 reshard_after_forward=false", compiled, batches).front();
    expect_equal(kept.weights, ddp.weights);
    // While it is recorded, a block must not find that another thread has seeded the generator.
    if (compiled) continue;
    const auto again = train_ranks(2, recomputed, "zero-3", compiled, batches).front();
    expect_equal(again.weights, ddp.weights);
  }
}

// The logical parameters, gathered, are the model's.
TEST(ZeroParameters, AreSavedFromTheirParts) {
  for (const char* optimizer : {"adamw", "muon"}) {
    run_on_one_core_each(3, [&](parallel::Collectives& collectives) {
      Case tested{"Frozen", frozen, optimizer};
      tested.strategy = kZero3;
      Trainee trainee(tested, std::nullopt, &collectives);
      const auto [input, target] = batch_of(tested, 4);
      trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 12});
      const auto saved = gathered(collectives, trainee.strategy->parameters_in_parts());
      trainee.strategy->gather_parameters();
      if (collectives.rank() == 0) expect_equal(saved, copies_of(trainee.model->parameters()));
    });
  }
}

TEST(ZeroRejects, ModelsWithoutBlocks) {
  const std::string error = error_of([&] {
    Case tested{"Linear", [] { return make_mlp({.hidden = {}}, kImages, 1); }, "sgd"};
    tested.strategy = "zero-3";
    parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(tested, {}, &two); });
  });
  EXPECT_TRUE(error.starts_with("parallel.name=zero-3 gathers parameters block by block"));
}

TEST(ZeroRejects, DegreesThatDoNotDivideTheProcesses) {
  EXPECT_EQ(
      error_of([] { parallel::zero3_mesh({.data_parallel_shard_degree = 3}, 4); }),
      "parallel.data_parallel_shard_degree is 3, which does not divide the 4 processes; set it "
      "to 2 or 4, or start 3 or 6 processes");
}

TEST(ZeroRejects, WhatNeedsWholeGradients) {
  const auto one = [](const StepConfig& config) {
    return error_of([&] {
      Case tested{"Mlp", mlp, "sgd", config};
      tested.strategy = "zero-1";
      parallel::run_ranks(2, [&](parallel::Collectives& two) { Trainee(tested, {}, &two); });
    });
  };
  EXPECT_TRUE(one({.sam = 0.05}).starts_with("train.sam with parallel.name=zero-1: "));
  EXPECT_TRUE(one({.clip_adaptive = 0.01}).starts_with("train.clip_adaptive with parallel.name="));
  EXPECT_EQ(one({}), "");
}

}  // namespace
}  // namespace gallop::train
