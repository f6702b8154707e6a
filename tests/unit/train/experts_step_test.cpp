// Steps of models with experts: what is added to the loss, and what is counted.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/data/text_samples.h"
#include "gallop/train/step/step.h"
#include "unit/parallel/ranks.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

Case with_experts(const model::ExpertsConfig& experts, const StepConfig& config = {}) {
  return {.name = "Experts",
          .make_model = [experts] { return gpt_of_experts(experts); },
          .optimizer = "sgd",
          .config = config,
          .text = true};
}

NamedTensors named(const NamedTensors& all, const std::string& end) {
  NamedTensors found;
  for (const auto& one : all) {
    if (one.name.ends_with(end)) found.push_back(one);
  }
  return found;
}

void expect_close(const Trainee& one, const Trainee& other) {
  const auto all = one.everything(), wanted = other.everything();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(at::allclose(all[i].tensor, wanted[i].tensor, 1e-4, 1e-6)) << all[i].name;
  }
}

// The mean over all tokens, while the other loss is that over the targets that are not ignored.
TEST(ExpertsStep, AddsTheMeanOfTheAuxiliaryLoss) {
  for (const bool ignores : {false, true}) {
    Case tested = with_experts({.num_experts = 4, .aux_loss_coef = 0.5, .z_loss_coef = 0.1});
    tested.config.every_target_counts = !ignores;
    const auto [input, target] = batch_of(tested, 6);
    if (ignores) target.slice(1, 0, 3).fill_(data::kIgnoredTarget);
    const auto plain = tested.make_model();
    const model::Output output = plain->forward_to_head(input);
    const at::Tensor loss = at::cross_entropy_loss(output.logits().flatten(0, 1), target.flatten(),
                                                   {}, at::Reduction::Mean, data::kIgnoredTarget) +
                            output.auxiliary_loss / static_cast<double>(input.numel());
    loss.backward();
    Trainee trainee(tested, std::nullopt);
    const StepResult result = trainee.step->run(labeled(input, target), 0, 0.1, false);
    EXPECT_NEAR(result.tally.loss(), loss.item<double>(), 1e-5);
    const auto before = plain->parameters(), after = trainee.model->parameters();
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::allclose(
          after[i].tensor, before[i].tensor.detach() - 0.1 * before[i].tensor.grad(), 1e-4, 1e-6))
          << before[i].name;
    }
  }
}

// Two steps, so that the second one depends on the biases of the first.
TEST(ExpertsStep, DoesNotDependOnHowTheBatchIsDivided) {
  for (const char* balancing : {"seq-aux-loss", "bias", "none"}) {
    for (const bool counted : {false, true}) {
      SCOPED_TRACE(balancing);
      Case tested = with_experts({.num_experts = 4,
                                  .load_balancing = balancing,
                                  .aux_loss_coef = 0.5,
                                  .bias_update_rate = 0.01},
                                 {.every_target_counts = counted});
      Trainee whole(tested, std::nullopt);
      tested.config.gradient_accumulation = 3;
      Trainee divided(tested, std::nullopt);
      for (int64_t step = 0; step < 2; ++step) {
        const auto [input, target] = batch_of(tested, 7);
        whole.step->run(labeled(input, target), step, 0.1, false);
        divided.step->run(labeled(input, target), step, 0.1, false);
      }
      expect_close(divided, whole);
    }
  }
}

TEST(ExpertsStep, CountsTokensOnceWhereLayersAreRecomputed) {
  const Case tested = with_experts({.num_experts = 4, .capacity_factor = 0.5});
  Trainee kept(tested, std::nullopt), recomputed(tested, std::nullopt);
  recomputed.model->recompute({true, true, true});
  const auto [input, target] = batch_of(tested, 6);
  for (Trainee* one : {&kept, &recomputed}) one->step->run(labeled(input, target), 0, 0.1, false);
  for (const char* name : {"tokens_per_expert", "dropped_tokens"}) {
    const auto wanted = named(kept.model->buffers(), name);
    const auto got = named(recomputed.model->buffers(), name);
    ASSERT_EQ(wanted.size(), 3);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(at::equal(got[i].tensor, wanted[i].tensor)) << wanted[i].name;
      EXPECT_GT(wanted[i].tensor.sum().item<int64_t>(), 0);
    }
  }
  for (const auto& one : named(kept.model->buffers(), "tokens_per_expert")) {
    EXPECT_EQ(one.tensor.sum().item<int64_t>(), 6 * 8 * 2);
  }
}

// Evaluations drop nothing and count nothing.
TEST(ExpertsStep, LeavesNoTraceOfEvaluations) {
  const Case tested = with_experts({.num_experts = 4, .capacity_factor = 0.1});
  Trainee trainee(tested, std::nullopt);
  const auto [input, target] = batch_of(tested, 6);
  trainee.model->set_training(false);
  const model::Output output = trainee.model->forward_to_head(input);
  EXPECT_FALSE(output.auxiliary_loss.defined());
  EXPECT_FALSE(output.step_statistics.defined());
  // A row has the same outputs alone.
  const at::Tensor alone = trainee.model->forward(input.slice(0, 0, 1));
  EXPECT_TRUE(at::allclose(alone, output.logits().slice(0, 0, 1), 1e-5, 1e-6));
}

// Twelve slices of the batch, whichever processes have them.
TEST(ExpertsStep, HasTheSameBitsForAnyNumberOfProcesses) {
  Case tested = with_experts({.num_experts = 4, .load_balancing = "bias"});
  tested.strategy = "deterministic";
  const auto [input, target] = batch_of(tested, 24);
  std::vector<NamedTensors> results;
  for (const int size : {1, 2, 3}) {
    NamedTensors result;
    parallel::run_ranks(size, [&, &input = input, &target = target](auto& collectives) {
      Trainee trainee(tested, std::nullopt, &collectives);
      const int64_t rows = 24 / size, begin = rows * collectives.rank();
      trainee.step->run(
          labeled(input.slice(0, begin, begin + rows), target.slice(0, begin, begin + rows)), 0,
          0.1, false, {}, {.rows = 24});
      if (collectives.rank() > 0) return;
      for (const auto& [name, tensor] : trainee.everything()) {
        result.push_back({name, tensor.detach().clone()});
      }
    });
    results.push_back(std::move(result));
  }
  for (const NamedTensors& result : results) {
    for (size_t i = 0; i < result.size(); ++i) {
      EXPECT_TRUE(at::equal(result[i].tensor, results.front()[i].tensor)) << result[i].name;
    }
  }
}

}  // namespace
}  // namespace gallop::train
