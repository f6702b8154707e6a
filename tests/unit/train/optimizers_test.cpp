// Requirements on every registered optimizer in a training step; new entries are tested
// automatically. compiled_options_test.cpp compares the compiled step of each with the plain step.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include "gallop/model/mlp.h"
#include "gallop/train/step/seed.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

// The first matrix is large enough for 8-bit states.
std::unique_ptr<model::Model> mlp() { return make_mlp({.hidden = {32, 12}}, kImages, 1); }

Covering<Case> make_cases() {
  const std::vector<std::pair<std::string, StepConfig>> configs = {
      {"Plain", {}},
      {"Accumulated", {.gradient_accumulation = 3}},
      {"Clipped", {.clip_grad_norm = 0.5}},
      {"Bf16", {.precision = Precision::kBf16}},
      {"Fp16", {.precision = Precision::kFp16}},
      {"Fp8", {.precision = Precision::kFp8}},
      {"Skipping", {.skip_nonfinite = true}},
  };
  std::vector<Combined<Case>> cases;
  const auto add = [&](const std::string& optimizer, const std::string& wrapping,
                       const std::string& wrappers, const std::string& config_name,
                       const StepConfig& config) {
    cases.push_back({{.name = in_a_name(optimizer) + wrapping + "_" + config_name,
                      .make_model = mlp,
                      .optimizer = optimizer,
                      .config = config,
                      .wrappers = wrappers},
                     {optimizer + "+" + wrapping, optimizer + "+" + config_name,
                      wrapping + "+" + config_name}});
  };
  for (const std::string& optimizer : every_optimizer()) {
    for (const auto& [wrapping, wrappers] : optim::every_wrapping()) {
      if (!optim::can_wrap(optimizer, wrappers)) continue;
      for (const auto& [config_name, config] : configs) {
        add(optimizer, wrapping, wrappers, config_name, config);
      }
    }
  }
  const std::vector<std::pair<std::string, StepConfig>> with_bf16_weights = {
      {"Bf16Weights", {.precision = Precision::kBf16Weights}},
      {"Bf16WeightsAll",
       {.precision = Precision::kBf16Weights,
        .gradient_accumulation = 3,
        .clip_grad_norm = 0.5,
        .skip_nonfinite = true}},
  };
  for (const std::string& optimizer : every_rounding_optimizer()) {
    for (const auto& [wrapping, wrappers] : optim::every_wrapping()) {
      if (wrappers.find("lookahead") != std::string::npos) continue;
      for (const auto& [config_name, config] : with_bf16_weights) {
        add(optimizer, wrapping, wrappers, config_name, config);
      }
    }
  }
  return cover(cases);
}

const Covering<Case>& all_cases() {
  static const Covering<Case> kCases = make_cases();
  return kCases;
}

class EveryOptimizer : public testing::TestWithParam<Case> {
 protected:
  // Runs steps on one batch; non-finite steps have no loss.
  static double run(Trainee& trainee, const std::pair<at::Tensor, at::Tensor>& batch, int64_t from,
                    int64_t to) {
    double loss = 0;
    for (int64_t step = from; step < to; ++step) {
      loss =
          trainee.step
              ->run(labeled(batch.first, batch.second), step, trainee.optimizer->base_lr(), false)
              .tally.loss();
    }
    return loss;
  }
};

TEST_P(EveryOptimizer, LearnsABatch) {
  seed_step(7, 0, at::kCPU);
  const auto batch = batch_of(GetParam(), 12);
  Trainee trainee(GetParam(), std::nullopt);
  const double first = run(trainee, batch, 0, 1), last = run(trainee, batch, 1, 60);
  EXPECT_LT(last, first);
}

TEST_P(EveryOptimizer, ContinuesBitForBitFromItsState) {
  seed_step(7, 0, at::kCPU);
  const auto batch = batch_of(GetParam(), 7);
  Trainee undisturbed(GetParam(), std::nullopt), resumed(GetParam(), std::nullopt);
  run(undisturbed, batch, 0, 3);
  // The state is written as in a checkpoint and read into a new run.
  undisturbed.optimizer->use_averaged_weights(true);
  resumed.optimizer->use_averaged_weights(true);
  const NamedTensors from = undisturbed.everything(), to = resumed.everything();
  ASSERT_EQ(from.size(), to.size());
  {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(from[i].name, to[i].name);
      to[i].tensor.copy_(from[i].tensor);
    }
  }
  undisturbed.optimizer->use_averaged_weights(false);
  resumed.optimizer->use_averaged_weights(false);
  run(undisturbed, batch, 3, 6);
  run(resumed, batch, 3, 6);
  const NamedTensors wanted = undisturbed.everything(), got = resumed.everything();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::equal(got[i].tensor, wanted[i].tensor)) << wanted[i].name;
  }
}

TEST_P(EveryOptimizer, SkipsAStepThatIsNotFinite) {
  seed_step(7, 0, at::kCPU);
  const auto batch = batch_of(GetParam(), 7);
  Trainee trainee(GetParam(), std::nullopt);
  run(trainee, batch, 0, 2);
  NamedTensors before;
  const auto kept = [&] {
    NamedTensors all = trainee.model->parameters();
    for (const auto& item : trainee.optimizer->state()) all.push_back(item);
    return all;
  };
  for (const auto& [name, tensor] : kept()) before.push_back({name, tensor.detach().clone()});
  run(trainee, {at::full_like(batch.first, INFINITY), batch.second}, 2, 3);
  const NamedTensors after = kept();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(before[i].tensor, after[i].tensor)) << before[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, EveryOptimizer, testing::ValuesIn(all_cases().usual),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, EveryOptimizer, testing::ValuesIn(all_cases().rest),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::train
