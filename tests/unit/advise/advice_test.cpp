#include "gallop/advise/advice.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gallop::advise {
namespace {

// A healthy training of 10 ms a step on 4 cores.
Facts healthy() {
  Facts facts{
      .profile = {.steps = 20,
                  .samples = 32,
                  .seconds = 10e-3,
                  .median = 10e-3,
                  .p95 = 10.4e-3,
                  .slowest = 10.5e-3,
                  .slowest_step = 9,
                  .phases = {{"data wait", 0.1e-3},
                             {"forward", 3e-3},
                             {"backward", 6e-3},
                             {"optimizer", 0.6e-3},
                             {"host", 0.3e-3}},
                  .layers = {{.name = "conv1",
                              .forward = 1e-3,
                              .backward = 2e-3,
                              .limit = 2e-3,
                              .limit_by_flops = 2e-3}},
                  .operators = {},
                  .loader = {.threads = 4, .busy = 0.2, .parts = {{"decode", 8e-3}}},
                  .memory = {}},
      .peaks = {.flops_per_second = {{"fp32", 1e11}, {"bf16", 2e11}}, .bytes_per_second = {}},
      .settings = {.precision = "bf16",
                   .channels_last = true,
                   .has_convolutions = true,
                   .why_not_compiled = {},
                   .samples = 50000,
                   .batch_size = 32,
                   .threads = 4,
                   .data_threads = 4,
                   .evaluate_every = "1 epoch",
                   .checkpoint_every = "10 min"},
      .trials = {},
      .cores = 4,
      .memory_bytes = int64_t{8} << 30};
  return facts;
}

// Adds a phase to the step, which takes longer then.
void add(Facts& facts, const std::string& phase, double seconds) {
  auto& phases = facts.profile.phases;
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [&](const auto& one) { return one.name == phase; });
  if (found == phases.end()) {
    phases.push_back({phase, seconds});
  } else {
    found->seconds += seconds;
  }
  facts.profile.seconds += seconds;
}

void add_trial(Facts& facts, const std::string& options, double speedup) {
  facts.trials.push_back({.options = options, .seconds = 10e-3 / speedup, .seconds_as_is = 10e-3});
}

// The only advice.
Advice only(const Facts& facts) {
  const auto all = advise(facts);
  EXPECT_EQ(all.size(), 1U);
  for (size_t i = 1; i < all.size(); ++i) ADD_FAILURE() << all[i].rule << ": " << all[i].finding;
  return all.empty() ? Advice() : all.front();
}

TEST(Advice, HealthyTrainingsGetNone) {
  Facts facts = healthy();
  EXPECT_TRUE(advise(facts).empty());
  // Trials that show nothing.
  add_trial(facts, "train.channels_last=false", 0.7);
  add_trial(facts, "data.batch_size=128", 0.26);
  EXPECT_TRUE(advise(facts).empty());
}

TEST(Advice, DataWaitAsksForTheThreadsThatAreNeeded) {
  Facts facts = healthy();
  facts.on_gpu = true;
  add(facts, "data wait", 20e-3);
  facts.settings.data_threads = 1;
  facts.cores = 8;
  facts.profile.loader = {.threads = 1, .busy = 0.99, .parts = {{"decode", 29e-3}}};
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "data-wait");
  EXPECT_NE(advice.finding.find("67.0 % of the step is spent waiting for data (20 steps)"),
            std::string::npos)
      << advice.finding;
  EXPECT_EQ(advice.remedy, "Set data.threads to 3 (8 cores, 1 in use)");
  EXPECT_EQ(advice.options, std::vector<std::string>{"data.threads=3"});
  // 30 ms become 9.9, the rest of the step, or 9.9 and half of 29 / 3 if they hardly overlap.
  EXPECT_NEAR(advice.gain.high, 30 / 9.9, 0.01);
  EXPECT_NEAR(advice.gain.low, 30 / (9.9 + 29.0 / 6), 0.01);
}

TEST(Advice, MeasuredLoaderThreadsReplaceWhatWasComputed) {
  Facts facts = healthy();
  add(facts, "data wait", 10e-3);
  facts.settings.data_threads = 1;
  facts.profile.loader = {.threads = 1, .busy = 0.99, .parts = {{"decode", 19e-3}}};
  EXPECT_EQ(loader_options_to_try(facts), std::vector<std::string>{"data.threads=2"});
  facts.trials = {
      {.options = "data.threads=2", .seconds = 12.5e-3, .seconds_as_is = 20e-3, .is_whole = true}};
  EXPECT_NEAR(only(facts).gain.low, 1.6 * 0.95, 1e-9);
  EXPECT_NEAR(only(facts).gain.high, 1.6 * 1.05, 1e-9);
  // More threads are not advised if they do not help.
  facts.trials[0].seconds = 20e-3;
  EXPECT_TRUE(only(facts).options.empty());
  EXPECT_NE(only(facts).remedy.find("More threads would not help"), std::string::npos);
  facts.settings.data_threads = 0;
  EXPECT_TRUE(advise(facts).empty());
  facts.trials.clear();
  EXPECT_EQ(loader_options_to_try(facts), std::vector<std::string>{"data.threads=2"});
}

TEST(Advice, DataWaitOnASlowDiskSaysSo) {
  Facts facts = healthy();
  add(facts, "data wait", 10e-3);
  facts.settings.data_threads = 16;
  facts.profile.loader = {.threads = 16, .busy = 0.9, .parts = {{"read", 18e-3}, {"decode", 2e-3}}};
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "data-wait");
  EXPECT_NE(advice.finding.find("90.0 % of the time with reading files"), std::string::npos)
      << advice.finding;
  EXPECT_EQ(advice.remedy, "Put the files on a faster disk, or into tar shards");
  EXPECT_TRUE(advice.options.empty());
  // Threads that wait for the disk may be more than the cores.
  facts.settings.data_threads = 4;
  facts.profile.loader = {.threads = 4, .busy = 0.9, .parts = {{"read", 68e-3}, {"decode", 2e-3}}};
  EXPECT_EQ(only(facts).options, std::vector<std::string>{"data.threads=8"});
}

TEST(Advice, ACacheOfDecodedSamplesIsAdvisedWhereItHelpsMost) {
  Facts facts = healthy();
  add(facts, "data wait", 10e-3);
  facts.profile.loader = {
      .threads = 4, .busy = 0.9, .parts = {{"decode", 70e-3}, {"augment", 4e-3}}};
  EXPECT_TRUE(only(facts).options.empty());  // All cores decode already.
  facts.settings.can_cache = true;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "data-wait");
  EXPECT_EQ(advice.options, std::vector<std::string>{"data.in_memory=yes"});
  EXPECT_EQ(advice.gain.basis, "computed for the second epoch and later ones");
  // 4 ms are left to be prepared in a step of 9.9 ms, on 4 cores that are busy with the step.
  EXPECT_NEAR(advice.gain.high, 20 / ((4 * 9.9 + 4) / 4), 0.01);
  // Without waiting, a step is as fast as one on a batch that is there.
  facts.step_alone = 3e-3;
  EXPECT_NEAR(only(facts).gain.high, 20 / ((4 * 3 + 4) / 4), 0.01);
  facts.step_alone = 0;
  // Neither reading nor decoding is what takes the time.
  facts.profile.loader.parts = {{"decode", 4e-3}, {"augment", 70e-3}};
  EXPECT_TRUE(only(facts).options.empty());
}

TEST(Advice, LoadingInTheTrainingThreadIsFound) {
  Facts facts = healthy();
  add(facts, "data wait", 5e-3);
  facts.settings.data_threads = 0;
  facts.profile.loader = {};
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "loader-in-training-thread");
  EXPECT_EQ(advice.options, std::vector<std::string>{"data.threads=1"});
  EXPECT_GT(advice.gain.low, 1);
}

struct MeasuredCase {
  std::string rule, options;
  void (*change)(Facts& facts);
};

class MeasuredAdvice : public testing::TestWithParam<MeasuredCase> {};

TEST_P(MeasuredAdvice, PredictsWhatWasMeasured) {
  Facts facts = healthy();
  GetParam().change(facts);
  EXPECT_TRUE(advise(facts).empty());  // Nothing is advised that was not found to be faster.
  const auto options = options_to_try(facts);
  EXPECT_NE(std::find(options.begin(), options.end(), GetParam().options), options.end());
  add_trial(facts, GetParam().options, 2);
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, GetParam().rule);
  EXPECT_EQ(advice.options, std::vector<std::string>{GetParam().options});
  // 96 % of the step become 1.9 to 2.1 times as fast.
  EXPECT_NEAR(advice.gain.low, 1 / (0.04 + 0.96 / 1.9), 1e-9);
  EXPECT_NEAR(advice.gain.high, 1 / (0.04 + 0.96 / 2.1), 1e-9);
  EXPECT_NE(advice.gain.basis.find("measured: 5.00 instead of 10.00 ms"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, MeasuredAdvice,
    testing::Values(MeasuredCase{"eager-steps", "train.compile=true",
                                 [](Facts& facts) { facts.settings.compiled = false; }},
                    MeasuredCase{"low-precision", "train.precision=bf16",
                                 [](Facts& facts) { facts.settings.precision = "fp32"; }},
                    MeasuredCase{"memory-format", "train.channels_last=true",
                                 [](Facts& facts) { facts.settings.channels_last = false; }},
                    MeasuredCase{"idle-cores", "train.threads=4",
                                 [](Facts& facts) { facts.settings.threads = 1; }},
                    MeasuredCase{"too-many-threads", "train.threads=4",
                                 [](Facts& facts) { facts.settings.threads = 16; }},
                    MeasuredCase{"recomputation", "train.activation_checkpointing={every: 0}",
                                 [](Facts& facts) { facts.settings.recomputes = true; }},
                    MeasuredCase{"micro-batches", "train.gradient_accumulation=1",
                                 [](Facts& facts) { facts.settings.micro_batches = 4; }}),
    [](const auto& tested) {
      std::string name = tested.param.rule;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Advice, ASmallBatchIsComparedPerSample) {
  Facts facts = healthy();
  // Four times the batch takes twice as long.
  add_trial(facts, "data.batch_size=128", 0.5);
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "small-batch");
  EXPECT_NE(advice.finding.find("a batch of 128 takes only 2.0 times as long"), std::string::npos)
      << advice.finding;
  EXPECT_EQ(advice.options,
            (std::vector<std::string>{"data.batch_size=128", "optimizer.lr_scaling=sqrt",
                                      "optimizer.lr_batch=32"}));
  facts.settings.scales_lr = true;
  EXPECT_EQ(only(facts).options, std::vector<std::string>{"data.batch_size=128"});
}

TEST(Advice, ALargerBatchDoesNotLoadFaster) {
  Facts facts = healthy();
  add(facts, "data wait", 10e-3);
  add_trial(facts, "data.batch_size=128", 0.5);
  const auto gain_of_batch = [&] {
    for (const Advice& one : advise(facts)) {
      if (one.rule == "small-batch") return one.gain.high;
    }
    return 0.0;
  };
  const double idle = gain_of_batch();
  facts.profile.loader.busy = 0.9;
  // 80 ms of four steps become 20 and the waits of all four.
  EXPECT_NEAR(gain_of_batch(), 80 / (20 + 4 * 10.1) * 1.05, 0.05);
  EXPECT_GT(idle, gain_of_batch());
}

TEST(Advice, PhasesOutsideOfTheStepAreFound) {
  for (const auto& [phase, rule] :
       {std::pair("evaluation", "evaluation-share"), std::pair("checkpoint", "checkpoint-share"),
        std::pair("report", "report-share"), std::pair("communication", "communication-share")}) {
    Facts facts = healthy();
    add(facts, phase, 10e-3);
    const Advice advice = only(facts);
    EXPECT_EQ(advice.rule, rule);
    EXPECT_LE(advice.gain.high, 2.11) << phase;
    EXPECT_GT(advice.gain.low, 1) << phase;
  }
}

TEST(Advice, CompressionIsForDdpThatDoesNotCompress) {
  for (const auto& [strategy, compresses, is_advised] :
       {std::tuple("ddp", false, true), std::tuple("ddp", true, false),
        std::tuple("zero-3", false, false)}) {
    Facts facts = healthy();
    add(facts, "communication", 10e-3);
    facts.settings.strategy = strategy;
    facts.settings.compresses_gradients = compresses;
    for (const Advice& one : advise(facts)) {
      if (one.rule != "communication-share") continue;
      EXPECT_EQ(one.remedy.find("parallel.compress") != std::string::npos, is_advised);
    }
  }
}

// So much that they take at most 5 % and 2 % of the time.
TEST(Advice, EvaluationsAndCheckpointsAreMadeLessOften) {
  const auto options_of = [](const std::string& phase, double seconds, const std::string& every) {
    Facts facts = healthy();
    add(facts, phase, seconds);
    facts.settings.evaluate_every = facts.settings.checkpoint_every = every;
    return only(facts).options;
  };
  using Options = std::vector<std::string>;
  EXPECT_EQ(options_of("evaluation", 10e-3, "1 epoch"), Options{"train.evaluate_every=20 epochs"});
  EXPECT_EQ(options_of("evaluation", 2e-3, "1 step"), Options{"train.evaluate_every=5 steps"});
  EXPECT_EQ(options_of("evaluation", 90e-3, "50 steps"),
            Options{"train.evaluate_every=10000 steps"});
  EXPECT_EQ(options_of("evaluation", 10e-3, "0.25 epochs"),
            Options{"train.evaluate_every=5 epochs"});
  EXPECT_EQ(options_of("evaluation", 2e-3, "0.07 epochs"),
            Options{"train.evaluate_every=0.35 epochs"});
  EXPECT_EQ(options_of("evaluation", 10e-3, "1epoch"), Options{"train.evaluate_every=20 epochs"});
  EXPECT_EQ(options_of("checkpoint", 10e-3, "30s").front(), "train.checkpoint_every=1500 s");
  EXPECT_EQ(options_of("checkpoint", 1e-3, "1 min").front(), "train.checkpoint_every=5 min");
}

TEST(Advice, EvaluationsOfTheRunCountWhereStepsHaveNone) {
  Facts facts = healthy();
  facts.evaluation_share_of_run = 0.05;
  EXPECT_TRUE(advise(facts).empty());
  facts.evaluation_share_of_run = 0.5;
  const auto found = advise(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "evaluation-share");
  EXPECT_EQ(found[0].finding, "Evaluations take 50.0 % of the run so far");
  // A 20th of the evaluations is left.
  EXPECT_NEAR(found[0].gain.low, 0.95 / (0.5 + 0.5 / 20), 1e-9);
  EXPECT_NEAR(found[0].gain.high, 2 * 1.05, 1e-9);
}

TEST(Advice, TheEvaluationAtTheEndIsKept) {
  Facts facts = healthy();
  facts.evaluation_share_of_run = 0.5;
  facts.settings.evaluate_every = "never";
  EXPECT_TRUE(advise(facts).empty());
}

// Checkpoints evict the caches of the steps between them.
TEST(Advice, StepsThatNothingInterruptsAreAsFastAsAlone) {
  Facts facts = healthy();
  add(facts, "checkpoint", 90e-3);
  EXPECT_TRUE(wants_step_alone(facts));
  const double least = 0.95 / (0.1 + 0.9 / 500);  // A 500th of the checkpoints is left.
  EXPECT_NEAR(only(facts).gain.low, least, 1e-9);
  EXPECT_NEAR(only(facts).gain.high, 10 * 1.05, 1e-9);
  facts.step_alone = 5e-3;
  EXPECT_NEAR(only(facts).gain.low, least, 1e-9);
  // Besides the 5 ms, 0.1 of data wait and 0.3 of the host.
  EXPECT_NEAR(only(facts).gain.high, 100 / 5.4, 1e-6);
  EXPECT_FALSE(wants_step_alone(healthy()));
}

TEST(Advice, FormatsThatTheTrainingHasMeasuredAreNotTriedAgain) {
  Facts facts = healthy();
  facts.settings.precision = "fp32";
  facts.settings.channels_last = false;
  EXPECT_EQ(options_to_try(facts).size(), 3U);
  facts.settings.measured_precision = facts.settings.measured_format = true;
  EXPECT_EQ(options_to_try(facts), std::vector<std::string>{"data.batch_size=128"});
}

TEST(Advice, SumsThatRunBesideNothingAreFound) {
  Facts facts = healthy();
  facts.profile.ranks = {
      {.rank = 0, .exposed_communication = 3e-3},
      {.rank = 1, .exposed_communication = 2e-3, .overlapped_communication = 1e-3}};
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "bucket-size");
  EXPECT_NE(advice.finding.find("20.0 % of the step waits for the all-reduce of gradients; 33.3 % "
                                "of the communication overlaps with the backward pass"),
            std::string::npos)
      << advice.finding;
  EXPECT_EQ(advice.options, std::vector<std::string>{"parallel.bucket=auto"});
  EXPECT_NEAR(advice.gain.high, 1 / 0.8, 1e-9);
  // A backward pass of 1.5 ms hides no more than half a millisecond.
  facts.profile.phases[2].seconds = 1.5e-3;
  EXPECT_NEAR(only(facts).gain.high, 1 / 0.95, 1e-9);
  facts.settings.measured_buckets = true;
  EXPECT_TRUE(advise(facts).empty());
  facts.settings.measured_buckets = false;
  facts.settings.strategy = "zero-3";
  EXPECT_TRUE(advise(facts).empty());
}

TEST(Advice, ALargeGradientThatComesLastIsFound) {
  Facts facts = healthy();
  facts.settings.measured_buckets = true;
  facts.profile.ranks = {
      {.rank = 0, .exposed_communication = 2e-3},
      {.rank = 1, .exposed_communication = 2e-3, .overlapped_communication = 1e-3}};
  facts.gradients = {.bytes = 100 << 20, .late = "wte.weight", .late_bytes = 50 << 20};
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "gradient-order");
  EXPECT_NE(advice.finding.find("The gradient of wte.weight, 50.0 MiB of 100.0 MiB"),
            std::string::npos)
      << advice.finding;
  EXPECT_EQ(advice.options, std::vector<std::string>{"parallel.compress=bf16"});
  EXPECT_GT(advice.gain.high, 1);
  facts.settings.compresses_gradients = true;
  EXPECT_TRUE(only(facts).options.empty());
  EXPECT_EQ(only(facts).gain.high, 1);
  facts.gradients.late_bytes = 10 << 20;
  EXPECT_TRUE(advise(facts).empty());
}

TEST(Advice, ASlowRankIsFound) {
  Facts facts = healthy();
  facts.profile.ranks = {{.rank = 0, .host = "a", .compute = 6e-3},
                         {.rank = 1, .host = "b", .compute = 8e-3, .last_into_collectives = 0.9}};
  const auto found = advise(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "rank-skew");
  EXPECT_NE(found[0].finding.find("Rank 1 on b computes 8.00 ms"), std::string::npos)
      << found[0].finding;
  EXPECT_NE(found[0].finding.find("comes last into 90.0 % of the collectives"), std::string::npos);
  EXPECT_NEAR(found[0].gain.high, 10.0 / 9, 1e-9);
  facts.profile.ranks[1].compute = 6.4e-3;
  EXPECT_TRUE(advise(facts).empty());
  // What takes hardly any of the step does not matter.
  facts.profile.ranks = {{.rank = 0, .compute = 0.1e-3}, {.rank = 1, .compute = 0.2e-3}};
  EXPECT_TRUE(advise(facts).empty());
}

TEST(Advice, WhatCannotBeActedOnHasNoOptions) {
  Facts facts = healthy();
  facts.other_cores = 2;
  EXPECT_EQ(only(facts).rule, "other-programs");
  EXPECT_TRUE(only(facts).options.empty());
  EXPECT_NEAR(only(facts).gain.low, 2, 1e-9);
  EXPECT_NEAR(only(facts).gain.high, 3, 1e-9);
  facts.other_cores = 0.5;  // One core, for which the others wait.
  EXPECT_NEAR(only(facts).gain.low, 2, 1e-9);
  EXPECT_NEAR(only(facts).gain.high, 3, 1e-9);
  facts.settings.threads = 2;
  EXPECT_TRUE(advise(facts).empty());

  facts = healthy();
  facts.settings.compiled = false;
  facts.settings.why_not_compiled = "aten::nonzero depends on data";
  EXPECT_EQ(only(facts).rule, "not-recordable");
  EXPECT_TRUE(only(facts).options.empty());
  EXPECT_TRUE(options_to_try(facts).size() == 2);

  facts = healthy();
  facts.profile.p95 = 30e-3;
  EXPECT_EQ(only(facts).rule, "uneven-steps");

  facts = healthy();
  facts.profile.layers[0].limit = 0.1e-3;
  const Advice slow = only(facts);
  EXPECT_EQ(slow.rule, "slow-layer");
  EXPECT_NE(slow.finding.find("at the limit a step would be"), std::string::npos) << slow.finding;
  // No option leads there, so no gain is promised.
  EXPECT_EQ(slow.gain.high, 1);
}

TEST(Advice, ParametersWithoutEffectAreNamed) {
  Facts facts = healthy();
  facts.model.unused_parameters = {"conv1.weight", "conv1.bias"};
  facts.model.unused_bytes = 2048;
  Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "unused-parameters");
  EXPECT_EQ(advice.finding,
            "The loss does not depend on 2 parameters (2.0 KiB), whose layers take 30.0 % of the "
            "step: conv1.weight and conv1.bias");
  EXPECT_NEAR(advice.gain.low, 1 / 0.7, 1e-9);
  facts.profile.layers.clear();
  EXPECT_EQ(only(facts).gain.high, 1);

  facts = healthy();
  facts.model.biases_before_norm = {"a.bias", "b.bias", "c.bias", "d.bias", "e.bias", "f.bias"};
  advice = only(facts);
  EXPECT_EQ(advice.rule, "bias-before-norm");
  EXPECT_EQ(advice.finding,
            "A batch norm subtracts the mean, and a.bias, b.bias, c.bias, d.bias and 2 more with "
            "it");
  EXPECT_EQ(advice.gain.high, 1);  // Not known unless measured.
  EXPECT_TRUE(advice_text({advice}).find("speed-up") == std::string::npos);
  facts.model.biases_before_norm = {"a.bias"};
  facts.settings.frozen = {"stem.*"};
  const std::string freeze = "train.freeze=[stem.*, a.bias]";
  EXPECT_EQ(only(facts).options, std::vector<std::string>{freeze});
  const auto options = options_to_try(facts);
  EXPECT_NE(std::find(options.begin(), options.end(), freeze), options.end());
  add_trial(facts, freeze, 1.2);
  EXPECT_NEAR(only(facts).gain.high, 1 / (0.04 + 0.96 / (1.2 * 1.05)), 1e-9);
}

TEST(Advice, LayersWhoseSizesDoNotSuitVectorsAreFound) {
  Facts facts = healthy();
  facts.profile.layers[0].limit = 2.5e-3;
  facts.model.shapes = {{.layer = "conv1",
                         .sizes = "33 inputs and 33 outputs",
                         .better_sizes = "64 inputs and 64 outputs",
                         .seconds = 1.1e-3,
                         .seconds_as_is = 1.15e-3}};
  EXPECT_TRUE(advise(facts).empty());
  facts.model.shapes[0].seconds_as_is = 2.2e-3;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.rule, "layer-sizes");
  EXPECT_EQ(advice.finding,
            "Layer conv1 has 33 inputs and 33 outputs, and is 2.00 times as fast with 64 inputs "
            "and 64 outputs");
  EXPECT_NEAR(advice.gain.high, 1 / (1 - 0.15), 1e-9);  // Half of 3 of 10 ms.
}

// 32 channels instead of 33 compute 6 % less.
TEST(Advice, ASmallerLayerMustBeFasterThanItsWork) {
  Facts facts = healthy();
  facts.model.shapes = {{.layer = "conv1",
                         .sizes = "33 inputs and 33 outputs",
                         .better_sizes = "32 inputs and 32 outputs",
                         .seconds = 1.75e-3,
                         .seconds_as_is = 2e-3,
                         .work = 0.94}};
  EXPECT_TRUE(advise(facts).empty());
  facts.model.shapes[0].seconds = 1.5e-3;
  EXPECT_EQ(only(facts).rule, "layer-sizes");
}

TEST(Advice, WhatTheMachineLimitsIsStated) {
  Facts facts = healthy();
  facts.profile.layers = {{.name = "wide", .forward = 2e-3, .backward = 4e-3, .limit = 5e-3}};
  EXPECT_EQ(only(facts).rule, "memory-bound");
  EXPECT_NE(only(facts).finding.find("60.0 % of the step moves data, at 83.3 % of the bandwidth"),
            std::string::npos)
      << only(facts).finding;
  EXPECT_TRUE(only(facts).options.empty());
  facts.profile.layers[0].limit_by_flops = 5e-3;
  EXPECT_TRUE(advise(facts).empty());

  facts = healthy();
  facts.numa_nodes = 2;
  EXPECT_EQ(only(facts).rule, "numa-nodes");
  facts.settings.threads = 2;
  EXPECT_TRUE(advise(facts).empty());

  facts = healthy();
  facts.huge_pages = "never";
  EXPECT_TRUE(advise(facts).empty());  // Hardly any memory.
  facts.profile.memory.parameters = int64_t{1} << 30;
  EXPECT_EQ(only(facts).rule, "huge-pages");
  facts.huge_pages = "madvise";
  EXPECT_TRUE(advise(facts).empty());
}

TEST(Advice, TheHighestGainComesFirst) {
  Facts facts = healthy();
  facts.settings.precision = "fp32";
  facts.settings.channels_last = false;
  facts.settings.verifies = true;
  add_trial(facts, "train.precision=bf16", 1.3);
  add_trial(facts, "train.channels_last=true", 1.8);
  const auto all = advise(facts);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].rule, "memory-format");
  EXPECT_EQ(all[1].rule, "low-precision");
  EXPECT_EQ(all[2].rule, "verification");
}

TEST(Advice, IsWrittenForPeopleAndMachines) {
  Facts facts = healthy();
  facts.settings.precision = "fp32";
  add_trial(facts, "train.precision=bf16", 2);
  const auto all = advise(facts);
  const std::string text = advice_text(all, 80);
  EXPECT_EQ(text,
            "1. Steps compute in fp32, and this machine is faster in bf16. Set\n"
            "   train.precision to bf16: expected speed-up 1.83x to 2.01x (measured: 5.00\n"
            "   instead of 10.00 ms).\n");
  const auto json = nlohmann::json::parse(advice_json(all));
  EXPECT_EQ(json[0]["options"][0], "train.precision=bf16");
  EXPECT_NEAR(json[0]["gain"]["low"], 1.83, 0.01);
}

TEST(Advice, RulesHaveDistinctNames) {
  std::set<std::string> names;
  for (const Rule& rule : all_rules()) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
}

}  // namespace
}  // namespace gallop::advise
