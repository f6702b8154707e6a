// Data-parallel steps in which some processes run out of memory.
#include <algorithm>
#include <mutex>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/train/out_of_memory.h"
#include "unit/base/error_of.h"
#include "unit/parallel/ranks_together.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/limited_allocator.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

constexpr int64_t kRows = 24, kSteps = 5, kFailingStep = 3;

std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {32, 24}}, kImages, 1); }
std::unique_ptr<model::Model> resnet() { return make_resnet({.depth = 8}, kImages, 1); }
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = 16, .heads = 2, .dropout = 0.1}, kText, 1);
}

/// Which processes run out of memory in a step, and after how many allocations.
struct Shortage {
  std::set<int> ranks;
  int64_t allocations = 0;
};

struct Ran {
  std::vector<at::Tensor> everything;
  int64_t splits = 1;
  std::string why;
  int64_t allocations = 0;  ///< In the step.
  bool has_failed = false;
};

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

Ran train(const Case& tested, bool compiled, const Batches& batches,
          parallel::Collectives* collectives, const std::optional<Shortage>& shortage,
          int64_t splits) {
  const auto compile = compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  Trainee trainee(tested, compile, collectives);
  const int rank = collectives != nullptr ? collectives->rank() : 0;
  const int size = collectives != nullptr ? collectives->size() : 1;
  const int64_t begin = kRows * rank / size, end = kRows * (rank + 1) / size;
  Ran ran;
  for (int64_t step = 0; step < kSteps; ++step) {
    const bool fails = step == kFailingStep && shortage && shortage->ranks.contains(rank);
    if (step == kFailingStep) trainee.step->set_splits(splits);
    const auto& [input, target] = batches[static_cast<size_t>(step)];
    const int64_t before = LimitedAllocator::allocations_of_thread();
    if (fails) LimitedAllocator::fail_after(shortage->allocations);
    trainee.step->run(labeled(input.slice(0, begin, end), target.slice(0, begin, end)), step, 0.01,
                      false, {}, {.rows = kRows});
    LimitedAllocator::fail_after(-1);
    if (step == kFailingStep) ran.allocations = LimitedAllocator::allocations_of_thread() - before;
  }
  if (trainee.strategy) trainee.strategy->gather_parameters();
  // States that processes share differ among them.
  const bool shares = are_divided(trainee.optimizer->logical_state());
  for (const auto& [name, tensor] : shares ? trainee.model->parameters() : trainee.everything()) {
    ran.everything.push_back(tensor.detach().clone());
  }
  ran.splits = trainee.step->splits();
  ran.why = trainee.step->why_split();
  return ran;
}

// The first of them, when all have the same; what failed where they did not come to the end.
Ran train_ranks(int size, const Case& tested, bool compiled, const Batches& batches,
                const std::optional<Shortage>& shortage, int64_t splits = 1) {
  LimitedAllocator::get();
  std::vector<Ran> all(static_cast<size_t>(size));
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<std::string> errors(all.size());
  error_of([&] {
    parallel::run_ranks_together(size, [&](parallel::Collectives& collectives) {
      at::set_num_threads(1);
      const auto rank = static_cast<size_t>(collectives.rank());
      errors[rank] = error_of(
          [&] { all[rank] = train(tested, compiled, batches, &collectives, shortage, splits); });
      LimitedAllocator::fail_after(-1);
      if (!errors[rank].empty()) throw DeviceError(errors[rank]);
    });
  });
  at::set_num_threads(threads);
  for (size_t rank = 0; rank < errors.size() && shortage; ++rank) {
    if (errors[rank].empty() || !shortage->ranks.contains(static_cast<int>(rank))) continue;
    return {.why = errors[rank], .has_failed = true};
  }
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const Ran& one : all) {
    EXPECT_EQ(one.splits, all.front().splits);
    EXPECT_EQ(one.why, all.front().why);
    if (one.everything.size() != all.front().everything.size()) continue;  // It has failed.
    for (size_t i = 0; i < one.everything.size(); ++i) {
      EXPECT_TRUE(at::equal(one.everything[i], all.front().everything[i])) << i;
    }
  }
  return all.front();
}

Batches batches_of(const Case& tested) {
  Batches batches;
  for (int64_t step = 0; step < kSteps; ++step) batches.push_back(batch_of(tested, kRows));
  return batches;
}

void expect_equal(const Ran& found, const Ran& wanted) {
  ASSERT_EQ(found.everything.size(), wanted.everything.size());
  for (size_t i = 0; i < wanted.everything.size(); ++i) {
    EXPECT_TRUE(at::equal(found.everything[i], wanted.everything[i])) << i;
  }
}

// Anywhere in the step: before the first all-reduce, between two, or while they are in flight.
void expect_split_by_all(int size, const Case& tested, bool compiled) {
  const auto batches = batches_of(tested);
  const Ran whole = train_ranks(size, tested, compiled, batches, {});
  const Ran wanted = train_ranks(size, tested, compiled, batches, {}, 2);
  int splits = 0;
  constexpr int kPlaces = 8;
  for (int place = 0; place < kPlaces; ++place) {
    const int64_t allocations = whole.allocations * place / kPlaces;
    SCOPED_TRACE(testing::Message() << size << " processes, allocation " << allocations
                                    << (compiled ? ", compiled" : ""));
    const Ran ran = train_ranks(size, tested, compiled, batches, Shortage{{size - 1}, allocations});
    if (ran.has_failed) {
      // Late in the step.
      EXPECT_GE(place, kPlaces / 2) << ran.why;
      EXPECT_NE(ran.why.find("resume from the last checkpoint"), std::string::npos) << ran.why;
      continue;
    }
    // Some operators work without scratch memory.
    if (ran.splits == 1) {
      expect_equal(ran, whole);
      continue;
    }
    splits += 1;
    EXPECT_EQ(ran.splits, 2);
    EXPECT_TRUE(ran.why.starts_with("Rank ")) << ran.why;
    EXPECT_NE(ran.why.find("can't allocate memory"), std::string::npos) << ran.why;
    expect_equal(ran, wanted);
  }
  EXPECT_GE(splits, kPlaces / 2);
}

class SharedStepWithoutMemory : public testing::TestWithParam<Case> {};
class SharedStepWithoutMemoryOfMore : public testing::TestWithParam<Case> {};

TEST_P(SharedStepWithoutMemory, IsSplitByAllAndHasTheBitsOfOneThatWas) {
  expect_split_by_all(2, GetParam(), /*compiled=*/false);
  expect_split_by_all(3, GetParam(), /*compiled=*/true);
}

TEST_P(SharedStepWithoutMemoryOfMore, IsSplitByAllAndHasTheBitsOfOneThatWas) {
  expect_split_by_all(3, GetParam(), /*compiled=*/false);
  expect_split_by_all(2, GetParam(), /*compiled=*/true);
}

TEST_P(SharedStepWithoutMemory, IsSplitOnceWhereSeveralHaveNone) {
  const Case& tested = GetParam();
  const auto batches = batches_of(tested);
  const Ran wanted = train_ranks(3, tested, /*compiled=*/true, batches, {}, 2);
  const Ran ran = train_ranks(3, tested, /*compiled=*/true, batches, Shortage{{0, 2}, 3});
  EXPECT_EQ(ran.splits, 2);
  EXPECT_TRUE(ran.why.starts_with("Rank 0 of 3: ")) << ran.why;
  expect_equal(ran, wanted);
}

std::vector<Case> all_cases() {
  return {Case{"Mlp", mlp, "adamw", {}, false, true, "[]", "ddp bucket=4KiB"},
          Case{"MlpCounted",
               mlp,
               "adamw",
               {.every_target_counts = true},
               false,
               true,
               "[]",
               "ddp bucket=4KiB"},
          Case{"MlpAccumulate",
               mlp,
               "sgd momentum=0.9",
               {.gradient_accumulation = 2, .clip_grad_norm = 0.1}},
          Case{.name = "MlpZero1",
               .make_model = mlp,
               .optimizer = "adamw",
               .config = {.clip_grad_norm = 0.1},
               .strategy = "zero-1 bucket=4KiB"},
          Case{.name = "MlpZero2",
               .make_model = mlp,
               .optimizer = "adamw",
               .config = {.gradient_accumulation = 2},
               .strategy = "zero-2 bucket=4KiB"},
          Case{.name = "MlpZero3",
               .make_model = mlp,
               .optimizer = "adamw",
               .config = {.gradient_accumulation = 2},
               .strategy = "zero-3 bucket=4KiB"},
          Case{"MlpRankOrder", mlp, "sgd", {}, false, true, "[]", "ddp bucket=4KiB sum_order=rank"},
          Case{"MlpFp16", mlp, "adamw", {.precision = precision::Precision::kFp16}},
          Case{"MlpSam", mlp, "sgd", {.sam = 0.05}, false, true, "[]", "ddp bucket=4KiB"},
          Case{"MlpEma", mlp, "sgd", {}, false, true, "[{ema: {decay: 0.9}}]", "ddp"},
          Case{"MlpSumsInBf16", mlp, "sgd", {}, false, true, "[]", "ddp bucket=4KiB compress=bf16"},
          Case{"Resnet", resnet, "sgd momentum=0.9", {.spikes = SpikeConfig{.action = "skip"}}},
          Case{"Gpt", gpt, "adamw", {.skip_nonfinite = true}, true}};
}

Covering<Case> chosen_cases() {
  return usual_by_name(all_cases(), {"MlpCounted", "MlpAccumulate", "MlpZero3", "Gpt"});
}

INSTANTIATE_TEST_SUITE_P(Usual, SharedStepWithoutMemory, testing::ValuesIn(chosen_cases().usual),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, SharedStepWithoutMemory, testing::ValuesIn(chosen_cases().rest),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, SharedStepWithoutMemoryOfMore, testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(SharedOutOfMemory, WeightsAreThoseOfOneProcessThatHadEnough) {
  const Case tested{"Mlp", mlp, "sgd momentum=0.9", {}, false, true, "[]", "ddp bucket=4KiB"};
  const auto batches = batches_of(tested);
  const Ran alone = train(tested, /*compiled=*/false, batches, nullptr, {}, 1);
  const Ran ran = train_ranks(3, tested, /*compiled=*/false, batches, Shortage{{1}, 20});
  EXPECT_EQ(ran.splits, 2);
  for (size_t i = 0; i < alone.everything.size(); ++i) {
    const double scale = alone.everything[i].abs().max().item<double>();
    const double difference = (ran.everything[i] - alone.everything[i]).abs().max().item<double>();
    EXPECT_LE(difference, 1e-5 * scale) << i;
  }
}

// All processes drop the error feedback of earlier all-reduces.
TEST(SharedOutOfMemory, SumsOfLowRankGoOn) {
  const Case tested{"PowerSgd", gpt,  "sgd", {},
                    true,       true, "[]",  "ddp compress=powersgd compress_rank=1"};
  const auto batches = batches_of(tested);
  for (const bool compiled : {false, true}) {
    for (const int64_t allocations : {0, 40}) {
      const Ran ran = train_ranks(2, tested, compiled, batches, Shortage{{1}, allocations});
      EXPECT_EQ(ran.splits, 2) << ran.why;
    }
  }
}

TEST(SharedOutOfMemory, FailsOnAllRanksIfOneSampleDoesNotFit) {
  const Case tested{"Mlp", mlp, "sgd"};
  LimitedAllocator::get();
  std::mutex mutex;
  std::vector<std::string> errors;
  parallel::run_ranks(2, [&](parallel::Collectives& collectives) {
    Trainee trainee(tested, std::nullopt, &collectives);
    const auto before = trainee.model->parameters().front().tensor.detach().clone();
    const auto [input, target] = batch_of(tested, 1);
    if (collectives.rank() == 1) LimitedAllocator::fail_after(2);
    try {
      trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 2});
    } catch (const StepDoesNotFit& error) {
      const std::lock_guard lock(mutex);
      errors.emplace_back(error.what());
    }
    LimitedAllocator::fail_after(-1);
    EXPECT_TRUE(at::equal(trainee.model->parameters().front().tensor, before));
  });
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_NE(errors[0].find("out of memory with one sample at a time"), std::string::npos);
  EXPECT_NE(errors[0].find("Rank 1 of 2: "), std::string::npos);
}

TEST(SharedOutOfMemory, IsRefusedWherePartsAreNotCutFurther) {
  for (const auto& [strategy, words] :
       {std::pair("deterministic",
                  "with parallel.name=deterministic batch slices are not split further"),
        std::pair("ddp batch_norm=synchronized", "set train.gradient_accumulation to 2")}) {
    const Case tested{"Resnet", resnet, "sgd", {}, false, true, "[]", strategy};
    const auto batches = batches_of(tested);
    Ran ran;
    // Some operators work without scratch memory.
    for (int64_t allocations = 5; allocations < 50 && !ran.has_failed; ++allocations) {
      ran = train_ranks(2, tested, /*compiled=*/false, batches, Shortage{{0}, allocations});
    }
    EXPECT_TRUE(ran.has_failed);
    EXPECT_NE(ran.why.find(words), std::string::npos) << ran.why;
  }
}

}  // namespace
}  // namespace gallop::train
