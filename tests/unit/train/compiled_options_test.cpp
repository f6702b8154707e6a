#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes.h"
#include "gallop/model/airbench.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/covering.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using precision::Precision;

struct Network {
  std::string name;
  MakeModel plain, with_dropout;  // With stochastic depth, too; null if unsupported.
  bool text = false;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> kNetworks = {
      {"Mlp",
       [] {
         return make_mlp({.hidden = {32, 12}}, kImages, 1);
       },
       [] {
         return make_mlp({.hidden = {32, 12}, .dropout = 0.2}, kImages, 1);
       }},
      {"Resnet", [] { return make_resnet({.depth = 8}, kImages, 1); },
       [] { return make_resnet({.depth = 8, .stochastic_depth = 0.4}, kImages, 1); }},
      {"Airbench",
       [] {
         return make_airbench({.widths = {8, 12}}, kImages, 1);
       },
       nullptr},
      {"Vit",
       [] { return make_vit({.patch = 4, .width = 16, .depth = 1, .heads = 2}, kImages, 1); },
       // With a width whose gradients are in the range of fp16 from the first step.
       [] {
         return make_vit({.patch = 4,
                          .width = 12,
                          .depth = 2,
                          .heads = 2,
                          .dropout = 0.1,
                          .stochastic_depth = 0.4},
                         kImages, 1);
       }},
      {"Gpt",
       [] { return make_gpt({.layers = 1, .width = 16, .heads = 2, .dropout = 0}, kText, 1); },
       [] {
         return make_gpt(
             {.layers = 2, .width = 16, .heads = 2, .dropout = 0.1, .stochastic_depth = 0.4}, kText,
             1);
       },
       true},
  };
  return kNetworks;
}

// Every parameter of this optimizer that can be scheduled.
std::vector<ScheduledParameter> scheduled_of(const std::string& optimizer) {
  const auto format = can_round(optimizer) ? at::kBFloat16 : at::kFloat;
  const auto made =
      built(optim::built_in_optimizers(), optimizer, {{"layer.weight", at::ones({2, 2}, format)}});
  std::vector<ScheduledParameter> scheduled = {ScheduledParameter::kDropout};
  for (const auto& [option, value] :
       {std::pair{optim::ScheduledOption::kMomentum, ScheduledParameter::kMomentum},
        {optim::ScheduledOption::kBeta2, ScheduledParameter::kBeta2},
        {optim::ScheduledOption::kWeightDecay, ScheduledParameter::kWeightDecay}}) {
    if (made->can_schedule(option)) scheduled.push_back(value);
  }
  return scheduled;
}

// A model of the same kind with other weights.
model::Model& teacher_of(const Network& network) {
  static std::map<std::string, std::unique_ptr<model::Model>> teachers;
  auto& teacher = teachers[network.name];
  if (!teacher) {
    teacher = network.with_dropout != nullptr ? network.with_dropout() : network.plain();
    teacher->to(at::kCPU, !network.text);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : teacher->parameters()) {
      tensor.set_requires_grad(false);
      tensor.mul_(1.5);
    }
    teacher->set_training(false);
  }
  return *teacher;
}

// The initial scale, with which no gradient of a finite batch overflows in fp16.
constexpr precision::GradScalerConfig kLossScale{.initial = 256};

// SGD and AdamW are combined with every option in the short tests.
bool is_common(const std::string& optimizer) {
  return optimizer.starts_with("sgd") || optimizer.starts_with("adamw");
}

// Every optimizer in every wrapper with all options, and networks with statistics without options.
void add_wrapped(std::vector<Combined<Case>>& cases) {
  for (const auto& [wrapping, wrappers] : optim::every_wrapping()) {
    if (wrappers == "[]") continue;
    for (const auto precision :
         {Precision::kFp32, Precision::kBf16, Precision::kBf16Weights, Precision::kFp16}) {
      const bool rounds = precision == Precision::kBf16Weights;
      if (rounds && wrappers.find("lookahead") != std::string::npos) continue;
      const std::string suffix = in_a_name(wrapping + "_" + precision::name_of(precision));
      for (const std::string& optimizer : optim::built_in_optimizers().names()) {
        if (!optim::can_wrap(optimizer, wrappers) || (rounds && !can_round(optimizer))) continue;
        const std::string format = precision::name_of(precision);
        cases.push_back({{.name = "Mlp_" + in_a_name(optimizer) + suffix,
                          .make_model = networks()[0].plain,
                          .optimizer = optimizer,
                          .config = {.precision = precision,
                                     .loss_scale = kLossScale,
                                     .gradient_accumulation = 2,
                                     .clip_grad_norm = 0.5,
                                     .skip_nonfinite = true},
                          .wrappers = wrappers},
                         {wrapping + "+" + optimizer, wrapping + "+" + format,
                          "wrapped+" + optimizer + "+" + format}});
      }
      // fp16 convolutions are slow on a CPU: only the long tests have them in every wrapper.
      const bool is_fp16 = precision == Precision::kFp16;
      cases.push_back({{.name = "Resnet_sgd" + suffix,
                        .make_model = networks()[1].plain,
                        .optimizer = "sgd",
                        .config = {.precision = precision, .loss_scale = kLossScale},
                        .wrappers = wrappers},
                       {"Resnet_sgd" + (is_fp16 ? "_fp16" : suffix)}});
    }
  }
}

// Every model in every precision, with one option at a time and all at once.
Covering<Case> make_cases() {
  const std::vector<std::pair<std::string, StepConfig>> options = {
      {"Plain", {.every_target_counts = true}},
      {"Accumulate", {.gradient_accumulation = 3}},
      {"Clip", {.clip_grad_norm = 0.1, .every_target_counts = true}},
      {"ClipValue", {.clip_value = 1e-3}},
      {"ClipAdaptive", {.clip_adaptive = 0.02}},
      {"Sam", {.gradient_accumulation = 2, .sam = 0.05}},
      {"Smooth", {.loss = cross_entropy_loss(0.1), .every_target_counts = true}},
      {"Skip", {.skip_nonfinite = true}},
      {"Dropout", {}},
      {"Distill", {.gradient_accumulation = 2, .every_target_counts = true}},
      {"Spikes", {.spikes = SpikeConfig{.action = "skip", .threshold = 0.1, .window = 2}}},
      {"Varied", {.clip_grad_norm = 0.5}},
      {"All",
       {.gradient_accumulation = 2,
        .clip_grad_norm = 0.5,
        .loss = cross_entropy_loss(0.2),
        .every_target_counts = true,
        .skip_nonfinite = true}},
  };
  const std::vector<std::pair<std::string, Precision>> precisions = {
      {"Fp32", Precision::kFp32},
      {"Bf16", Precision::kBf16},
      {"Bf16Weights", Precision::kBf16Weights},
      {"Fp16", Precision::kFp16},
      {"Fp8", Precision::kFp8}};
  std::vector<Combined<Case>> cases;
  for (const Network& network : networks()) {
    const bool has_fp8 = network.plain()->fp8_layers() > 0;
    // Every optimizer with one network, and the usual ones with all.
    const bool is_first = &network == &networks().front();
    std::vector<std::string> optimizers =
        is_first ? every_optimizer() : std::vector<std::string>{"sgd", "adamw"};
    for (const char* one : {"sgd momentum=0.9 rounding=kahan", "adamw state_bits=8 rounding=kahan",
                            "lamb rounding=nearest"}) {
      if (is_first) optimizers.emplace_back(one);
    }
    if (!is_first) optimizers.emplace_back("adamw rounding=kahan");
    for (const std::string& optimizer : optimizers) {
      for (const auto& [precision_name, precision] : precisions) {
        if (precision == Precision::kFp8 && !has_fp8) continue;
        const bool rounds = precision == Precision::kBf16Weights;
        if (rounds && !can_round(optimizer)) continue;
        if (!rounds && optimizer.find("rounding=") != std::string::npos) continue;
        for (auto [option_name, config] : options) {
          const bool drops =
              option_name == "Dropout" || option_name == "Varied" || option_name == "All";
          if (option_name == "Varied") config.scheduled = scheduled_of(optimizer);
          if (option_name == "Dropout" && network.with_dropout == nullptr) continue;
          // These options are mutually exclusive.
          if (config.sam && (rounds || optimizer.rfind("schedule-free", 0) == 0)) continue;
          config.precision = precision;
          config.loss_scale = kLossScale;
          if (option_name == "Distill") config.distill = {.teacher = &teacher_of(network)};
          const auto make =
              drops && network.with_dropout != nullptr ? network.with_dropout : network.plain;
          // On a CPU these are slow: the first network has them with every option.
          const bool is_slow = precision == Precision::kFp16 || precision == Precision::kFp8;
          const std::string of_network = network.name + "+" + precision_name;
          std::vector<std::string> combinations = {
              is_slow && !is_first ? of_network : of_network + "+" + option_name,
              network.name + "+" + optimizer, optimizer + "+" + precision_name};
          if (is_common(optimizer) || drops || option_name == "Plain") {
            combinations.push_back(optimizer + "+" + option_name);
          }
          cases.push_back({{.name = network.name + "_" + in_a_name(optimizer) + "_" +
                                    precision_name + "_" + option_name,
                            .make_model = make,
                            .optimizer = optimizer,
                            .config = config,
                            .text = network.text},
                           std::move(combinations)});
        }
      }
    }
  }
  add_wrapped(cases);
  return cover(cases);
}

const Covering<Case>& all_cases() {
  static const Covering<Case> kCases = make_cases();
  return kCases;
}

class CompiledOptions : public testing::TestWithParam<Case> {};

// One batch in the middle is not finite; with micro-batches, and without any option, the last one
// is smaller, for which the step is compiled again.
TEST_P(CompiledOptions, LeaveTheBitsOfTheStepAsItIs) {
  const Case& tested = GetParam();
  const bool ends_smaller =
      tested.config.gradient_accumulation > 1 || tested.name.ends_with("Plain");
  Trainee plain(tested, std::nullopt);
  Trainee compiled(tested,
                   compile::CompileConfig{.passes_off = compile::names_of_rounding_passes()});
  for (int64_t step = 0; step < 6; ++step) {
    seed_step(5, step, at::kCPU);
    const auto [input, target] = batch_of(tested, step == 5 && ends_smaller ? 4 : 7);
    if (step == 3 && tested.config.skip_nonfinite && !tested.text) input.fill_(INFINITY);
    const double lr = 0.01 * static_cast<double>(step + 1);
    std::vector<double> scheduled;
    for (const ScheduledParameter value : tested.config.scheduled) {
      scheduled.push_back(value == ScheduledParameter::kDropout ? 0.1 + lr : 0.9 - 10 * lr);
    }
    const StepResult wanted =
        plain.step->run(labeled(input, target), step, lr, step % 2 == 0, scheduled);
    const StepResult got =
        compiled.step->run(labeled(input, target), step, lr, step % 2 == 0, scheduled);
    EXPECT_EQ(got.finite, wanted.finite) << "step " << step;
    EXPECT_EQ(got.is_spike, wanted.is_spike) << "step " << step;
    EXPECT_EQ(wanted.finite, std::isfinite(input.sum().item<double>())) << "step " << step;
    if (!wanted.finite) continue;
    EXPECT_EQ(got.tally.loss_sum, wanted.tally.loss_sum) << "step " << step;
    EXPECT_EQ(got.tally.top1, wanted.tally.top1) << "step " << step;
    EXPECT_EQ(got.gradient_norm, wanted.gradient_norm) << "step " << step;
  }
  const NamedTensors wanted = plain.everything(), got = compiled.everything();
  for (size_t i = 0; i < wanted.size(); ++i) {
    // Statistics of a non-finite batch are not finite.
    EXPECT_TRUE(at::allclose(got[i].tensor, wanted[i].tensor, 0, 0, /*equal_nan=*/true))
        << wanted[i].name;
  }
  EXPECT_EQ(compiled.step->compile_report()->replayed, 6);
  EXPECT_EQ(compiled.step->compile_report()->eager, 0);
}

INSTANTIATE_TEST_SUITE_P(Usual, CompiledOptions, testing::ValuesIn(all_cases().usual),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, CompiledOptions, testing::ValuesIn(all_cases().rest),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::train
