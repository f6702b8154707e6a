// Data-parallel steps compared with those of a single process.
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/train/step/step.h"
#include "unit/parallel/ranks.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"
#include "unit/train/trainer_cases.h"

namespace gallop::train {
namespace {

std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {16, 12}}, kImages, 1); }
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = 16, .heads = 2}, kText, 1);
}
std::unique_ptr<model::Model> vit() {
  return make_vit({.patch = 4, .width = 16, .depth = 2, .heads = 2}, kImages, 1);
}

std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 8}, kImages, 1); }

constexpr const char* kSynchronized = "ddp batch_norm=synchronized";

// The rows of each batch, the last `broken` of them broken: some have too few for all processes.
struct Rows {
  int64_t all, broken = 0;
};
using AllRows = std::vector<Rows>;
const AllRows kBatches = {{12}, {12}, {13}, {12, 2}, {2}, {12}, {5, 1}, {1}, {12}, {12}};
// Enough rows for statistics that do not amplify rounding errors.
const AllRows kLargeBatches = {{24}, {24}, {25}, {24, 2}, {24}, {23}, {24}, {24, 1}, {24}, {24}};
const AllRows kWholeBatches = {{24}, {24}, {25}, {24}, {24}, {5}, {24}, {1}, {24}, {24}};

struct Results {
  std::vector<StepResult> steps;
  NamedTensors everything;
};

std::pair<at::Tensor, at::Tensor> some_rows(const std::pair<at::Tensor, at::Tensor>& batch,
                                            int64_t begin, int64_t end) {
  return {batch.first.slice(0, begin, end), batch.second.slice(0, begin, end)};
}

// The results of this process; it runs alone without collectives.
Results train(const Case& tested, bool compiled,
              const std::vector<std::pair<at::Tensor, at::Tensor>>& batches,
              parallel::Collectives* collectives, const AllRows& rows = kBatches) {
  const auto compile = compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  Trainee trainee(tested, compile, collectives);
  Results results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto [all, broken] = rows[i];
    const auto step = static_cast<int64_t>(i);
    int64_t begin = 0, end = all;
    if (collectives != nullptr) {
      begin = all * collectives->rank() / collectives->size();
      end = all * (collectives->rank() + 1) / collectives->size();
    }
    const auto [input, target] =
        some_rows(batches[i], begin, std::max(begin, std::min(end, all - broken)));
    results.steps.push_back(
        trainee.step->run(labeled(input, target), step, 0.01, i % 2 == 0, {}, {.rows = all}));
  }
  if (compiled) {
    EXPECT_TRUE(trainee.step->compile_report()->reasons.empty())
        << trainee.step->compile_report()->reasons.front();
  }
  for (const auto& [name, tensor] : trainee.everything()) {
    results.everything.push_back({name, tensor.detach().clone()});
  }
  return results;
}

std::vector<Results> train_ranks(int size, const Case& tested, bool compiled,
                                 const std::vector<std::pair<at::Tensor, at::Tensor>>& batches,
                                 const AllRows& rows = kBatches) {
  std::vector<Results> all(static_cast<size_t>(size));
  // Results of some operators depend on the number of threads.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
    at::set_num_threads(1);
    all[static_cast<size_t>(collectives.rank())] =
        train(tested, compiled, batches, &collectives, rows);
  });
  at::set_num_threads(threads);
  return all;
}

const AllRows& rows_of(const Case& tested) {
  return tested.strategy == kSynchronized ? kLargeBatches : kBatches;
}

std::vector<std::pair<at::Tensor, at::Tensor>> batches_of(const Case& tested,
                                                          const AllRows& all = kBatches) {
  std::vector<std::pair<at::Tensor, at::Tensor>> batches;
  for (const Rows& rows : all) batches.push_back(batch_of(tested, rows.all));
  return batches;
}

// Relative to the largest element of the tensor.
double largest_difference(const at::Tensor& got, const at::Tensor& wanted) {
  const double scale = wanted.to(at::kDouble).abs().max().item<double>();
  const double difference =
      (got.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
  return scale > 0 ? difference / scale : difference;
}

void expect_close(const Results& got, const Results& wanted, double most) {
  for (size_t i = 0; i < wanted.steps.size(); ++i) {
    const StepResult &one = got.steps[i], &other = wanted.steps[i];
    EXPECT_EQ(one.tally.count, other.tally.count) << "step " << i;
    EXPECT_NEAR(one.tally.loss() / other.tally.loss(), 1, most) << "step " << i;
    EXPECT_NEAR(one.gradient_norm / other.gradient_norm, 1, most) << "step " << i;
    if (i % 2 == 0) {
      EXPECT_EQ(one.tally.top1, other.tally.top1) << "step " << i;
    }
    EXPECT_TRUE(one.finite && other.finite);
  }
  ASSERT_EQ(got.everything.size(), wanted.everything.size());
  for (size_t i = 0; i < wanted.everything.size(); ++i) {
    EXPECT_LT(largest_difference(got.everything[i].tensor, wanted.everything[i].tensor), most)
        << wanted.everything[i].name;
  }
}

void expect_same_bits(const Results& one, const Results& other) {
  for (size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_EQ(one.steps[i].tally.loss_sum, other.steps[i].tally.loss_sum);
    EXPECT_EQ(one.steps[i].gradient_norm, other.steps[i].gradient_norm);
  }
  for (size_t i = 0; i < one.everything.size(); ++i) {
    EXPECT_TRUE(at::equal(one.everything[i].tensor, other.everything[i].tensor))
        << one.everything[i].name;
  }
}

class SharedStep : public testing::TestWithParam<Case> {};
class SharedStepOfMore : public testing::TestWithParam<Case> {};

void expect_close_to_one_process(const Case& tested,
                                 const std::vector<std::pair<int, bool>>& sizes) {
  const AllRows& rows = rows_of(tested);
  const auto batches = batches_of(tested, rows);
  const Results alone = train(tested, /*compiled=*/false, batches, nullptr, rows);
  for (const auto& [size, compiled] : sizes) {
    SCOPED_TRACE(testing::Message() << size << " processes" << (compiled ? ", compiled" : ""));
    const auto all = train_ranks(size, tested, compiled, batches, rows);
    expect_close(all.front(), alone, 1e-5);
    for (const Results& one : all) expect_same_bits(one, all.front());
  }
}

TEST_P(SharedStep, IsThatOfOneProcess) {
  expect_close_to_one_process(GetParam(), {{1, false}, {2, true}, {3, false}});
}

TEST_P(SharedStepOfMore, IsThatOfOneProcess) {
  expect_close_to_one_process(GetParam(),
                              {{1, true}, {2, false}, {3, true}, {4, false}, {4, true}});
}

std::vector<Case> shared_cases() {
  return {
      Case{"Mlp", mlp, "sgd momentum=0.9"}, Case{"MlpAdamw", mlp, "adamw"},
      // Counts that are inferred from sizes.
      Case{"MlpCounted",
           mlp,
           "sgd momentum=0.9",
           {.gradient_accumulation = 2, .every_target_counts = true}},
      Case{"MlpCountedClipped", mlp, "sgd", {.clip_grad_norm = 0.1, .every_target_counts = true}},
      Case{"MlpCountedSam", mlp, "sgd", {.sam = 0.05, .every_target_counts = true}},
      Case{"GptCounted", gpt, "sgd momentum=0.9", {.every_target_counts = true}, true},
      Case{"MlpAccumulate", mlp, "sgd momentum=0.9", {.gradient_accumulation = 3}},
      Case{"MlpAccumulateInSmallBuckets",
           mlp,
           "sgd momentum=0.9",
           {.gradient_accumulation = 3, .sam = 0.05},
           false,
           true,
           "[]",
           "ddp bucket=1KiB"},
      Case{"MlpClipped", mlp, "sgd", {.clip_grad_norm = 0.1}},
      Case{"MlpClippedByValue", mlp, "sgd", {.clip_value = 0.01}},
      Case{"MlpClippedAdaptively", mlp, "sgd", {.clip_adaptive = 0.01}},
      Case{"MlpSam", mlp, "sgd", {.sam = 0.05}},
      // With Adam, the bias of keys, whose gradient is only rounding error, would diverge.
      Case{"Gpt", gpt, "sgd momentum=0.9", {}, true},
      Case{"GptExperts",
           [] { return gpt_of_experts({.num_experts = 4, .z_loss_coef = 0.01}); },
           "sgd momentum=0.9",
           {},
           true},
      Case{"GptExpertsCounted",
           [] { return gpt_of_experts({.num_experts = 4, .load_balancing = "bias"}); },
           "sgd momentum=0.9",
           {.gradient_accumulation = 2, .every_target_counts = true},
           true},
      Case{"Vit", vit, "sgd momentum=0.9", {.loss = cross_entropy_loss(0.1)}},
      Case{"ResnetSynchronized", resnet, "sgd momentum=0.9", {}, false, true, "[]", kSynchronized}};
}

INSTANTIATE_TEST_SUITE_P(Zoo, SharedStep, testing::ValuesIn(shared_cases()),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, SharedStepOfMore, testing::ValuesIn(shared_cases()),
                         [](const auto& tested) { return tested.param.name; });

// A batch whose samples are all broken.
TEST(SharedStep, WithoutSamplesIsSkippedAndFinite) {
  const AllRows rows = {{12}, {12, 12}, {12}};
  for (const bool counted : {false, true}) {
    for (const bool compiled : {false, true}) {
      Case tested{"Mlp", mlp, "sgd momentum=0.9"};
      tested.config.every_target_counts = counted;
      const auto all = train_ranks(2, tested, compiled, batches_of(tested, rows), rows);
      for (const Results& one : all) {
        expect_same_bits(one, all.front());
        EXPECT_EQ(one.steps[1].gradient_norm, 0);
        for (const StepResult& step : one.steps) EXPECT_TRUE(step.finite);
      }
    }
  }
}

// As on a GPU, where a result is read while later steps are in flight.
TEST(SharedStep, IsTheSameWhereItsNumbersArriveLate) {
  for (const auto& [strategy, counted] : std::vector<std::pair<std::string, bool>>{
           {"ddp", true}, {"ddp", false}, {"deterministic", true}, {"deterministic", false}}) {
    Case tested{"Mlp", mlp, "sgd", {.spikes = SpikeConfig{.action = "skip"}}};
    tested.config.every_target_counts = counted;
    tested.strategy = strategy;
    const auto batches = batches_of(tested, kWholeBatches);
    const auto wanted = train_ranks(2, tested, /*compiled=*/false, batches, kWholeBatches);
    std::array<int64_t, 2> pushes{}, waits{};
    std::atomic<size_t> made{0};
    tested.config.make_results = [&](c10::Device, int64_t most_numbers) {
      const size_t process = made++;
      return std::make_unique<LateResults>(pushes[process], waits[process], most_numbers);
    };
    const auto late = train_ranks(2, tested, /*compiled=*/false, batches, kWholeBatches);
    for (const Results& one : late) {
      expect_same_bits(one, wanted.front());
      for (size_t i = 0; i < one.steps.size(); ++i) {
        EXPECT_EQ(one.steps[i].tally.top1, wanted.front().steps[i].tally.top1);
        EXPECT_EQ(one.steps[i].tally.count, wanted.front().steps[i].tally.count);
      }
    }
    EXPECT_EQ(waits[0], static_cast<int64_t>(batches.size()));
  }
}

double loss_of_one_step(const Case& tested, const std::pair<at::Tensor, at::Tensor>& batch,
                        parallel::Collectives* collectives) {
  Trainee trainee(tested, std::nullopt, collectives);
  return trainee.step
      ->run(labeled(batch.first, batch.second), 0, 0.01, false, {},
            {.rows = 2 * batch.first.size(0)})
      .tally.loss();
}

TEST(SharedStep, DropsOtherNumbersInEachProcess) {
  for (const double dropout : {0.0, 0.5}) {
    static double share = 0;
    share = dropout;
    const Case tested{
        "Dropout", [] { return make_mlp({.hidden = {64}, .dropout = share}, kImages, 1); }, "sgd"};
    const auto batch = batch_of(tested, 8);
    const double alone = loss_of_one_step(tested, batch, nullptr);
    // Both processes have the same slice.
    parallel::run_ranks(2, [&](parallel::Collectives& collectives) {
      const double together = loss_of_one_step(tested, batch, &collectives);
      if (dropout > 0) {
        EXPECT_GT(std::abs(together / alone - 1), 1e-4);
      } else {
        EXPECT_NEAR(together / alone, 1, 1e-6);
      }
    });
  }
}

// Bitwise equal results for any number of processes, from losses to all states.
class DeterministicStep : public testing::TestWithParam<Case> {};
class DeterministicStepOfMore : public testing::TestWithParam<Case> {};

void expect_same_bits_with(const std::vector<int>& sizes, Case tested, bool compiled) {
  tested.strategy = "deterministic";
  const auto batches = batches_of(tested, kWholeBatches);
  const auto one = train_ranks(1, tested, compiled, batches, kWholeBatches);
  for (const int size : sizes) {
    SCOPED_TRACE(testing::Message() << size << " processes" << (compiled ? ", compiled" : ""));
    for (const Results& some : train_ranks(size, tested, compiled, batches, kWholeBatches)) {
      expect_same_bits(some, one.front());
    }
  }
  if (tested.name == "Mlp" || tested.name == "Gpt") {
    expect_close(one.front(), train(tested, compiled, batches, nullptr, kWholeBatches), 1e-5);
  }
}

TEST_P(DeterministicStep, HasTheSameBitsForAnyNumberOfProcesses) {
  expect_same_bits_with({3}, GetParam(), /*compiled=*/false);
  expect_same_bits_with({2, 4}, GetParam(), /*compiled=*/true);
}

TEST_P(DeterministicStepOfMore, HasTheSameBitsForAnyNumberOfProcesses) {
  expect_same_bits_with({2, 4, 6}, GetParam(), /*compiled=*/false);
  expect_same_bits_with({3, 6}, GetParam(), /*compiled=*/true);
}

std::vector<Case> deterministic_cases() {
  return {
      Case{"Mlp", mlp, "sgd momentum=0.9"},
      Case{"MlpAdamw", mlp, "adamw"},
      Case{"MlpCounted", mlp, "adamw", {.sam = 0.05, .every_target_counts = true}},
      Case{"GptCounted", gpt, "sgd momentum=0.9", {.every_target_counts = true}, true},
      Case{"MlpDropout",
           [] { return make_mlp({.hidden = {16}, .dropout = 0.3}, kImages, 1); },
           "adamw",
           {.clip_grad_norm = 1}},
      Case{"MlpSam", mlp, "sgd", {.sam = 0.05}},
      Case{"Gpt", gpt, "sgd momentum=0.9", {}, true},
      Case{"GptBf16", gpt, "adamw", {.precision = precision::Precision::kBf16}, true},
      Case{"Resnet", resnet, "sgd"},
      Case{"ResnetBf16", resnet, "sgd momentum=0.9", {.precision = precision::Precision::kBf16}}};
}

Covering<Case> chosen_deterministic_cases() {
  return usual_by_name(deterministic_cases(),
                       {"MlpCounted", "MlpDropout", "GptCounted", "GptBf16", "Resnet"});
}

INSTANTIATE_TEST_SUITE_P(Zoo, DeterministicStep,
                         testing::ValuesIn(chosen_deterministic_cases().usual),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, DeterministicStep,
                         testing::ValuesIn(chosen_deterministic_cases().rest),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, DeterministicStepOfMore, testing::ValuesIn(deterministic_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(SharedStep, RefusesWhatHasNoFixedBatchSlices) {
  Case tested{"Mlp", mlp, "sgd"};
  tested.strategy = "deterministic";
  const auto batch = batch_of(tested, 8);
  const auto one = parallel::single_process_group();
  Trainee trainee(tested, std::nullopt, one.get());
  EXPECT_THROW(
      trainee.step->run(labeled(batch.first, batch.second), 0, 0.1, false, {}, {.rows = 9}),
      DataError);
  tested.config.gradient_accumulation = 2;
  EXPECT_THROW(Trainee(tested, std::nullopt, one.get()), UsageError);
  tested.config.gradient_accumulation = 1;
  EXPECT_THROW(
      parallel::run_ranks(5, [&](parallel::Collectives& five) { Trainee(tested, {}, &five); }),
      UsageError);
}

// Cases that round more than fp32, and sign-based optimizers: close to a single process, and
// bitwise equal in all processes.
class SharedStepOfAny : public testing::TestWithParam<Case> {};

TEST_P(SharedStepOfAny, HasTheSameBitsInAll) {
  const Case& tested = GetParam();
  const auto batches = batches_of(tested);
  const Results alone = train(tested, /*compiled=*/false, batches, nullptr);
  for (const bool compiled : {false, true}) {
    const auto all = train_ranks(3, tested, compiled, batches);
    for (const Results& one : all) expect_same_bits(one, all.front());
    // Statistics of slices differ from those of the whole batch, and those of two samples amplify
    // the rounding of bf16.
    for (size_t i = 0; i < alone.steps.size() && !tested.name.starts_with("BatchNorm"); ++i) {
      const double loss = all.front().steps[i].tally.loss(), wanted = alone.steps[i].tally.loss();
      EXPECT_NEAR(loss / wanted, 1, 0.02) << "step " << i;
    }
  }
}

std::vector<Case> any_cases() {
  using precision::Precision;
  std::vector<Case> cases = {
      {"Bf16", gpt, "sgd momentum=0.9", {.precision = Precision::kBf16}, true},
      {"Bf16Weights", mlp, "adamw", {.precision = Precision::kBf16Weights}},
      {"Fp16",
       mlp,
       "adamw",
       {.precision = Precision::kFp16, .gradient_accumulation = 2, .clip_grad_norm = 1}},
      {"BatchNorm", resnet, "sgd"},
      {"BatchNormBf16",
       resnet,
       "sgd",
       {.precision = Precision::kBf16, .sam = 0.05},
       false,
       true,
       "[]",
       kSynchronized},
      {"SumsInBf16", mlp, "sgd", {}, false, true, "[]", "ddp compress=bf16"},
      {"SumsInFp16",
       mlp,
       "adamw",
       {.gradient_accumulation = 2},
       false,
       true,
       "[]",
       "ddp compress=fp16"},
      {"PowerSgd", gpt, "sgd", {}, true, true, "[]", "ddp compress=powersgd compress_rank=1"},
      {"Spikes", mlp, "sgd", {.spikes = SpikeConfig{.action = "skip"}}},
      {"Fp16Counted",
       mlp,
       "adamw",
       {.precision = Precision::kFp16,
        .gradient_accumulation = 2,
        .clip_grad_norm = 1,
        .every_target_counts = true}}};
  for (const std::string& optimizer : every_optimizer()) {
    cases.push_back({"Optimizer_" + in_a_name(optimizer), mlp, optimizer});
  }
  for (const auto& [name, wrappers] : optim::every_wrapping()) {
    if (!name.empty()) cases.push_back({name, mlp, "sgd", {}, false, true, wrappers});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Any, SharedStepOfAny, testing::ValuesIn(any_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::train
