// The collective calls of 64 processes, simulated one at a time.
#include <algorithm>

#include <gtest/gtest.h>

#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "unit/parallel/fake_collectives.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

constexpr int kProcesses = 64;

// Batches where some processes get one sample more, where most get none, and the first again.
constexpr int64_t kRows[] = {3 * kProcesses + 5, 7, 3 * kProcesses + 5};

struct Calls {
  std::vector<std::string> calls;
  int64_t bytes = 0;  // Summed.
};

Calls calls_of(const Case& tested, int rank) {
  parallel::FakeCollectives fake(rank, kProcesses);
  Trainee trainee(tested, std::nullopt, &fake);
  for (int64_t step = 0; step < static_cast<int64_t>(std::size(kRows)); ++step) {
    const int64_t all = kRows[step];
    const int64_t own = all * (rank + 1) / kProcesses - all * rank / kProcesses;
    const auto [input, target] = batch_of(tested, own);
    trainee.step->run(labeled(input, target), step, 0.01, false, {}, {.rows = all});
  }
  return {.calls = fake.calls, .bytes = fake.bytes};
}

class ManyProcesses : public testing::TestWithParam<Case> {};

TEST_P(ManyProcesses, MakeTheSameCallsInTheSameOrder) {
  const auto first = calls_of(GetParam(), 0);
  EXPECT_GE(first.calls.size(), 2 * std::size(kRows));
  for (int rank = 1; rank < kProcesses; ++rank) {
    EXPECT_EQ(calls_of(GetParam(), rank).calls, first.calls) << "rank " << rank;
  }
}

TEST_P(ManyProcesses, SumEachGradientOnce) {
  const auto fake = calls_of(GetParam(), 5);
  const auto model = GetParam().make_model();
  int64_t least = 0;
  for (const auto& [name, tensor] : model->parameters())
    least += static_cast<int64_t>(tensor.nbytes());
  least *= static_cast<int64_t>(std::size(kRows));
  // zero-2 and zero-3 sum each micro-batch, also of processes with less than one row for each.
  const std::string& strategy = GetParam().strategy;
  if (strategy.starts_with("zero-2") || strategy.starts_with("zero-3"))
    least *= GetParam().config.gradient_accumulation;
  EXPECT_GE(fake.bytes, least);
  // Offsets in buckets are multiples of 64 bytes; statistics and losses are small.
  EXPECT_LE(fake.bytes, least + least / 4 + 20000);
}

// Others, whose batches have a shape that they know, wait for it.
TEST(ManyProcessesCompiled, ReportWhenTheyCompile) {
  const Case tested{.name = "Mlp",
                    .make_model = [] { return make_mlp({.hidden = {8}}, kImages, 1); },
                    .optimizer = "sgd",
                    .config = {.compile = compile::CompileConfig()}};
  parallel::FakeCollectives fake(0, 2);
  Trainee trainee(tested, std::nullopt, &fake);
  const auto compilings_of = [&](int64_t rows) {
    fake.calls.clear();
    const auto [input, target] = batch_of(tested, rows);
    trainee.step->run(labeled(input, target), 0, 0.01, false, {}, {.rows = 2 * rows});
    EXPECT_GT(fake.calls.size(), 2U);
    const auto last = std::find(fake.calls.rbegin(), fake.calls.rend(), "compiling");
    EXPECT_TRUE(last == fake.calls.rend() || fake.calls.front() == "compiling");
    return std::count(fake.calls.begin(), fake.calls.end(), "compiling");
  };
  // The second call of a shape is recorded, too, to compare it with the first.
  EXPECT_GT(compilings_of(4), 0);
  EXPECT_GT(compilings_of(4), 0);
  EXPECT_EQ(compilings_of(4), 0);
  EXPECT_GT(compilings_of(3), 0);
  EXPECT_EQ(compilings_of(4), 0);
}

std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {64, 48}}, kImages, 1); }

INSTANTIATE_TEST_SUITE_P(
    Zoo, ManyProcesses,
    testing::Values(
        Case{"Mlp", mlp, "sgd"},
        Case{.name = "MlpInSmallBuckets",
             .make_model = mlp,
             .optimizer = "adamw",
             .config = {.gradient_accumulation = 2, .clip_grad_norm = 1},
             .strategy = "ddp bucket=1KiB"},
        Case{.name = "MlpZero1",
             .make_model = mlp,
             .optimizer = "adamw",
             .config = {.gradient_accumulation = 2, .clip_grad_norm = 1},
             .strategy = "zero-1 bucket=16KiB"},
        Case{.name = "MlpZero2",
             .make_model = mlp,
             .optimizer = "adamw",
             .config = {.gradient_accumulation = 2, .clip_grad_norm = 1},
             .strategy = "zero-2 bucket=16KiB"},
        Case{.name = "MlpZero3",
             .make_model = mlp,
             .optimizer = "adamw",
             .config = {.gradient_accumulation = 2, .clip_grad_norm = 1},
             .strategy = "zero-3 bucket=16KiB"},
        Case{
            .name = "GptZero3",
            .make_model = [] { return make_gpt({.layers = 3, .width = 64, .heads = 2}, kText, 1); },
            .optimizer = "muon",
            .text = true,
            .strategy = "zero-3 bucket=16KiB"},
        Case{
            .name = "GptZero1",
            .make_model = [] { return make_gpt({.layers = 2, .width = 64, .heads = 2}, kText, 1); },
            .optimizer = "muon",
            .text = true,
            .strategy = "zero-1 bucket=16KiB"},
        Case{"Gpt",
             [] { return make_gpt({.layers = 2, .width = 32, .heads = 2}, kText, 1); },
             "adamw",
             {},
             true},
        Case{"Resnet", [] { return make_resnet({.depth = 8}, kImages, 1); }, "sgd"},
        Case{"ResnetSynchronized",
             [] { return make_resnet({.depth = 8}, kImages, 1); },
             "sgd",
             {},
             false,
             true,
             "[]",
             "ddp batch_norm=synchronized"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::train
