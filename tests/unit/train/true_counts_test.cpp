// A step divides by the number of targets that count, however the batch is split.
#include <cmath>

#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>
#include <gtest/gtest.h>

#include "gallop/data/text_samples.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/train/step/step.h"
#include "unit/parallel/ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {16, 12}}, kImages, 1); }
std::unique_ptr<model::Model> gpt() {
  return make_gpt({.layers = 2, .width = 16, .heads = 2}, kText, 1);
}

using Pair = std::pair<at::Tensor, at::Tensor>;

// Some rows have many ignored targets, others none, so that slices of the batch differ.
Pair text_with_ignored_targets(const Case& tested, int64_t rows) {
  auto [input, target] = batch_of(tested, rows);
  for (int64_t row = 0; row < rows; row += 2) {
    target.select(0, row).slice(0, 0, 1 + (3 * row) % 8).fill_(data::kIgnoredTarget);
  }
  return {input, target};
}

double count_of(const at::Tensor& target) {
  return target.ne(data::kIgnoredTarget).sum().item<double>();
}

// Uses a learning rate of 0, so that gradients can be inspected.
void expect_mean_of_pytorch(const Case& tested, const Pair& batch) {
  const auto& [input, target] = batch;
  const auto plain = tested.make_model();
  const at::Tensor logits = plain->forward(input), rows = logits.reshape({-1, logits.size(-1)});
  const bool is_soft = target.is_floating_point();
  const at::Tensor loss = at::cross_entropy_loss(
      rows, is_soft ? target.reshape(rows.sizes()) : target.reshape(-1), {}, at::Reduction::Mean);
  loss.backward();
  Trainee trainee(tested, std::nullopt);
  const StepResult result = trainee.step->run(labeled(input, target), 0, 0, /*count_correct=*/true);
  EXPECT_NEAR(result.tally.loss(), loss.item<double>(), 1e-5);
  EXPECT_EQ(static_cast<double>(result.tally.count),
            is_soft ? static_cast<double>(rows.size(0)) : count_of(target));
  double squares = 0;
  const auto wanted = plain->parameters(), found = trainee.model->parameters();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i].tensor.grad(), wanted[i].tensor.grad(), 1e-4, 1e-6))
        << wanted[i].name;
    squares += wanted[i].tensor.grad().to(at::kDouble).square().sum().item<double>();
  }
  EXPECT_NEAR(result.gradient_norm, std::sqrt(squares), 1e-5);
}

TEST(TrueCounts, IgnoredTargetsCountForNothing) {
  for (const int64_t accumulate : {1, 2, 5}) {
    const Case tested{"Gpt", gpt, "sgd", {.gradient_accumulation = accumulate}, true};
    expect_mean_of_pytorch(tested, text_with_ignored_targets(tested, 7));
  }
}

TEST(TrueCounts, RowsOfSoftLabelsCountOnce) {
  for (const int64_t accumulate : {1, 2, 5}) {
    const Case tested{"Mlp", mlp, "sgd", {.gradient_accumulation = accumulate}};
    const auto [input, labels] = batch_of(tested, 7);
    expect_mean_of_pytorch(tested, {input, at::softmax(at::randn({7, 5}), 1)});
  }
}

struct Trained {
  std::vector<StepResult> steps;
  NamedTensors everything;
};

// This process's slice of each batch; the whole batch without collectives.
Trained train(const Case& tested, bool compiled, const std::vector<Pair>& batches,
              parallel::Collectives* collectives) {
  const auto compile = compiled ? std::optional(compile::CompileConfig()) : std::nullopt;
  Trainee trainee(tested, compile, collectives);
  Trained trained;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [input, target] = batches[i];
    const int64_t rows = input.size(0);
    int64_t begin = 0, end = rows;
    if (collectives != nullptr) {
      begin = rows * collectives->rank() / collectives->size();
      end = rows * (collectives->rank() + 1) / collectives->size();
    }
    trained.steps.push_back(
        trainee.step->run(labeled(input.slice(0, begin, end), target.slice(0, begin, end)),
                          static_cast<int64_t>(i), 0.05,
                          /*count_correct=*/true, {}, {.rows = rows}));
  }
  if (compiled) {
    EXPECT_TRUE(trainee.step->compile_report()->reasons.empty())
        << trainee.step->compile_report()->reasons.front();
  }
  for (const auto& [name, tensor] : trainee.everything()) {
    trained.everything.push_back({name, tensor.detach().clone()});
  }
  return trained;
}

void expect_close(const Trained& found, const Trained& wanted) {
  for (size_t i = 0; i < wanted.steps.size(); ++i) {
    const StepResult &one = found.steps[i], &other = wanted.steps[i];
    EXPECT_EQ(one.tally.count, other.tally.count) << "step " << i;
    EXPECT_EQ(one.tally.top1, other.tally.top1) << "step " << i;
    EXPECT_NEAR(one.tally.loss(), other.tally.loss(), 1e-5) << "step " << i;
    EXPECT_NEAR(one.gradient_norm, other.gradient_norm, 1e-4) << "step " << i;
  }
  for (size_t i = 0; i < wanted.everything.size(); ++i) {
    EXPECT_TRUE(at::allclose(found.everything[i].tensor.to(at::kDouble),
                             wanted.everything[i].tensor.to(at::kDouble), 1e-4, 1e-5))
        << wanted.everything[i].name;
  }
}

std::vector<Trained> train_ranks(int size, const Case& tested, bool compiled,
                                 const std::vector<Pair>& batches) {
  std::vector<Trained> all(static_cast<size_t>(size));
  parallel::run_ranks(size, [&](parallel::Collectives& collectives) {
    all[static_cast<size_t>(collectives.rank())] = train(tested, compiled, batches, &collectives);
  });
  return all;
}

class TrueCountsTogether : public testing::TestWithParam<Case> {};

TEST_P(TrueCountsTogether, AreThoseOfOneProcess) {
  const Case& tested = GetParam();
  std::vector<Pair> batches;
  for (const int64_t rows : {12, 12, 13, 3, 1, 12}) {
    batches.push_back(text_with_ignored_targets(tested, rows));
  }
  const Trained alone = train(tested, /*compiled=*/false, batches, nullptr);
  expect_close(train(tested, /*compiled=*/true, batches, nullptr), alone);
  for (const std::string strategy : {"ddp", "deterministic"}) {
    if (strategy == "deterministic" && tested.config.gradient_accumulation > 1) continue;
    Case shared = tested;
    shared.strategy = strategy;
    for (const int size : {1, 2, 3, 4}) {
      const bool compiled = size == 2;
      SCOPED_TRACE(testing::Message() << size << strategy << (compiled ? ", compiled" : ""));
      expect_close(train_ranks(size, shared, compiled, batches).back(), alone);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpt, TrueCountsTogether,
    testing::Values(Case{"Experts",
                         [] { return gpt_of_experts({.num_experts = 4}); },
                         "sgd momentum=0.9",
                         {.gradient_accumulation = 2},
                         true},
                    Case{"Plain", gpt, "sgd momentum=0.9", {}, true},
                    Case{"Accumulate", gpt, "sgd", {.gradient_accumulation = 3}, true},
                    Case{"Clip", gpt, "sgd", {.clip_grad_norm = 0.1}, true},
                    Case{"ClipValue", gpt, "sgd", {.clip_value = 0.01}, true},
                    Case{"ClipAdaptive", gpt, "sgd", {.clip_adaptive = 0.01}, true},
                    Case{"Sam", gpt, "sgd", {.gradient_accumulation = 2, .sam = 0.05}, true},
                    Case{"Spikes", gpt, "sgd", {.spikes = SpikeConfig{.action = "skip"}}, true},
                    Case{"SkipNonfinite", gpt, "sgd", {.skip_nonfinite = true}, true}),
    [](const auto& tested) { return tested.param.name; });

// Weights and state remain unchanged.
TEST(TrueCounts, ABatchWithoutAnyTargetChangesNothing) {
  for (const bool compiled : {false, true}) {
    const Case tested{"Gpt", gpt, "sgd momentum=0.9 weight_decay=0.1", {}, true};
    Trainee trainee(tested, compiled ? std::optional(compile::CompileConfig()) : std::nullopt);
    auto [input, target] = batch_of(tested, 4);
    for (int64_t step = 0; step < 4; ++step)
      trainee.step->run(labeled(input, target), step, 0.1, false);
    NamedTensors before;
    for (const auto& [name, tensor] : trainee.everything()) {
      before.push_back({name, tensor.detach().clone()});
    }
    target = at::full_like(target, data::kIgnoredTarget);
    const StepResult result = trainee.step->run(labeled(input, target), 4, 0.1, true);
    EXPECT_TRUE(result.finite);
    EXPECT_EQ(result.tally.count, 0);
    EXPECT_EQ(result.tally.loss(), 0);
    const auto after = trainee.everything();
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(after[i].tensor, before[i].tensor)) << before[i].name;
    }
  }
}

}  // namespace
}  // namespace gallop::train
