#include "gallop/train/step/step.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/train/step/seed.h"
#include "unit/data/fake_accelerator.h"
#include "unit/train/fake_operators.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

// A small network with an optimizer that leaves the gradients for inspection.
struct Fixture {
  model::ModelRegistry models = model::built_in_models();
  optim::OptimizerRegistry optimizers = optim::built_in_optimizers();
  std::unique_ptr<model::Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;

  Fixture() {
    const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
    model = models.build(config::Component(models, "mlp"), task, 1);
    optimizer = optimizers.build(config::Component(optimizers, "sgd"), model->parameters());
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : model->parameters()) gradients.push_back(parameter.tensor.grad());
    return gradients;
  }
};

at::Tensor images(int64_t count) { return at::randn({count, 1, 4, 4}); }
at::Tensor labels(int64_t count) { return at::randint(3, {count}, at::kLong); }

TEST(TrainStep, AccumulatedGradientsEqualThoseOfOneBatchForEveryRaggedSplit) {
  seed_step(1, 0, at::kCPU);
  const at::Tensor input = images(11), target = labels(11);
  std::vector<at::Tensor> wanted;
  for (const int64_t pieces : {1, 2, 3, 4, 5, 11, 20}) {
    Fixture fixture;
    TrainStep step(*fixture.model, *fixture.optimizer, {.gradient_accumulation = pieces});
    const StepResult result = step.run(labeled(input, target), 0, 0.0, true);
    EXPECT_EQ(result.tally.count, 11);
    if (wanted.empty()) wanted = fixture.gradients();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(at::allclose(fixture.gradients()[i], wanted[i], 1e-5, 1e-7)) << pieces;
    }
  }
}

TEST(TrainStep, AnUpdateThatIsNotFiniteIsNotAppliedAndNamesTheFirstBadTensor) {
  Fixture fixture;
  TrainStep step(*fixture.model, *fixture.optimizer, {});
  std::vector<at::Tensor> before;
  for (const auto& parameter : fixture.model->parameters()) {
    before.push_back(parameter.tensor.detach().clone());
  }
  const at::Tensor input = at::full({2, 1, 4, 4}, std::numeric_limits<float>::quiet_NaN());
  const StepResult result = step.run(labeled(input, labels(2)), 0, 0.1, false);
  EXPECT_FALSE(result.finite);
  EXPECT_EQ(result.non_finite_tensor, "loss");
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::allclose(fixture.model->parameters()[i].tensor, before[i], 0, 0));
  }
}

TEST(TrainStep, AGradientThatIsNotFiniteIsAppliedOnlyByThoseWhoStop) {
  for (const StepConfig& config :
       {StepConfig{}, StepConfig{.skip_nonfinite = true}, StepConfig{.clip_grad_norm = 1.0}}) {
    Fixture fixture;
    const auto parameters = fixture.model->parameters();
    const at::Tensor weight = parameters.front().tensor;
    const auto hook =
        weight.register_hook([](const at::Tensor& gradient) { return gradient.div(0.0); });
    const at::Tensor before = parameters.back().tensor.detach().clone();
    TrainStep step(*fixture.model, *fixture.optimizer, config);
    const StepResult result = step.run(labeled(images(2), labels(2)), 0, 0.1, false);
    EXPECT_FALSE(result.finite);
    EXPECT_EQ(result.non_finite_tensor, parameters.front().name);
    EXPECT_FALSE(std::isfinite(result.gradient_norm));
    const bool may_change = !config.skip_nonfinite && !config.clip_grad_norm;
    EXPECT_EQ(at::equal(parameters.back().tensor, before), !may_change);
    weight.remove_hook(hook);
  }
}

TEST(TrainStep, ClipsTheGlobalNorm) {
  seed_step(1, 0, at::kCPU);
  const at::Tensor input = images(8), target = labels(8);
  Fixture start, free, clipped;
  const double lr = 1, max_norm = 0.01;
  TrainStep(*free.model, *free.optimizer, {}).run(labeled(input, target), 0, lr, false);
  const StepResult result =
      TrainStep(*clipped.model, *clipped.optimizer, {.clip_grad_norm = max_norm})
          .run(labeled(input, target), 0, lr, false);
  EXPECT_GT(result.gradient_norm, max_norm);
  // The updates of SGD with a learning rate of 1 are the gradients.
  double square = 0;
  for (size_t i = 0; i < start.model->parameters().size(); ++i) {
    const at::Tensor from = start.model->parameters()[i].tensor;
    const at::Tensor change = clipped.model->parameters()[i].tensor - from;
    square += std::pow(change.norm().item<double>(), 2);
    EXPECT_TRUE(at::allclose(change * (result.gradient_norm / max_norm),
                             free.model->parameters()[i].tensor - from, 1e-3, 1e-4));
  }
  EXPECT_NEAR(std::sqrt(square), max_norm, 1e-6);
}

TEST(SeedStep, DrawsTheSameForTheSameStepWhateverCameBefore) {
  seed_step(5, 17, at::kCPU);
  const at::Tensor first = at::randn({10});
  at::randn({1000});
  seed_step(5, 17, at::kCPU);
  EXPECT_TRUE(at::allclose(at::randn({10}), first, 0, 0));
  seed_step(5, 18, at::kCPU);
  EXPECT_FALSE(at::allclose(at::randn({10}), first));
}

// Weights after steps 0 and 1, or twice step 0, of a network with dropout.
std::vector<at::Tensor> after_steps(int64_t accumulate, uint64_t seed, bool twice_the_first) {
  const model::Task task{.channels = 1, .height = 4, .width = 4, .classes = 3};
  const auto optimizers = optim::built_in_optimizers();
  const auto model = model::make_mlp({.hidden = {64}, .dropout = 0.5}, task, 1);
  const auto optimizer =
      optimizers.build(config::Component(optimizers, "sgd"), model->parameters());
  TrainStep step(*model, *optimizer, {.gradient_accumulation = accumulate, .seed = seed});
  const auto input = at::ones({6, 1, 4, 4}), target = at::zeros({6}, at::kLong);
  step.run(labeled(input, target), 0, 0.1, false);
  step.run(labeled(input, target), twice_the_first ? 0 : 1, 0.1, false);
  std::vector<at::Tensor> weights;
  for (const auto& parameter : model->parameters()) {
    weights.push_back(parameter.tensor.detach().clone());
  }
  return weights;
}

TEST(TrainStep, DropoutDependsOnSeedAndStepAndOnNoGenerator) {
  const auto all_equal = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!a[i].equal(b[i])) return false;
    }
    return true;
  };
  const auto first = after_steps(1, 7, false);
  at::randn({1000});
  EXPECT_TRUE(all_equal(first, after_steps(1, 7, false)));
  EXPECT_FALSE(all_equal(first, after_steps(1, 8, false)));
  EXPECT_FALSE(all_equal(first, after_steps(1, 7, true)));
  // The micro-batches of a step, identical here, use different dropout masks.
  const auto pieces = after_steps(2, 7, false);
  EXPECT_TRUE(all_equal(pieces, after_steps(2, 7, false)));
  EXPECT_FALSE(all_equal(pieces, first));
}

TEST(Loss, TakesSharesOfClassesAndNamesBadTargets) {
  const at::Tensor logits = at::randn({4, 5}), shares = at::softmax(at::randn({4, 5}), 1);
  const double wanted = -(shares * at::log_softmax(logits, 1)).sum().item<double>();
  EXPECT_NEAR(cross_entropy_sum(logits, shares, 0).item<double>(), wanted, 1e-5);
  EXPECT_THROW(cross_entropy_sum(logits, at::full({4}, 5, at::kLong), 0), DataError);
}

TEST(Loss, CountsRightGuessesOnlyWhereAsked) {
  const at::Tensor logits = at::randn({40, 3}), target = labels(40);
  const Losses losses = cross_entropy_sum({.x = logits}, target, 0, /*count_correct=*/true);
  EXPECT_EQ(losses.correct.item<int64_t>(), count_correct(logits, target, false).top1);
  EXPECT_FALSE(cross_entropy_sum({.x = logits}, target, 0, false).correct.defined());
}

TEST(Loss, IgnoresMarkedTargetsAndSmoothsLabelsAsPyTorchDefines) {
  const at::Tensor logits = at::randn({2, 3, 5});
  at::Tensor target = at::randint(5, {2, 3}, at::kLong);
  target.select(0, 0).fill_(data::kIgnoredTarget);
  EXPECT_EQ(count_targets(target), 3);
  const at::Tensor log_p = at::log_softmax(logits.select(0, 1), 1);
  double wanted = 0;
  for (int64_t t = 0; t < 3; ++t) {
    const int64_t label = target[1][t].item<int64_t>();
    wanted -= 0.9 * log_p[t][label].item<double>() + 0.1 / 5 * log_p[t].sum().item<double>();
  }
  EXPECT_NEAR(cross_entropy_sum(logits, target, 0.1).item<double>(), wanted, 1e-4);
}

TEST(CountCorrect, TopFiveOfFewClassesIsEveryOne) {
  const at::Tensor logits = at::randn({7, 3}), target = labels(7);
  const Tally tally = count_correct(logits, target, true);
  EXPECT_EQ(tally.top5, 7);
  EXPECT_EQ(tally.count, 7);
  EXPECT_LE(tally.top1, 7);
}

/// Two layers whose weights are created on their device, because LibTorch's modules move only to
/// devices that it knows.
class TwoLayers final : public model::Model {
 public:
  explicit TwoLayers(at::Device device) {
    seed_step(2, 0, at::kCPU);
    for (const auto& [name, sizes] :
         {std::pair<const char*, std::vector<int64_t>>("a", {16, 8}), {"b", {8}}, {"c", {8, 3}}}) {
      const at::Tensor weight = (at::randn(sizes) * 0.3).to(device);
      parameters_.push_back({name, weight.set_requires_grad(true)});
    }
  }
  at::Tensor forward(const at::Tensor& input) override {
    const auto& w = parameters_;
    return at::relu(input.flatten(1).matmul(w[0].tensor) + w[1].tensor).matmul(w[2].tensor);
  }
  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return {}; }
  void set_training(bool) override {}
  bool training() const override { return true; }
  void to(at::Device, bool) override {}

 private:
  NamedTensors parameters_;
};

// On a fake device that counts the waits of the host.
void compare_steps_on_a_device() {
  register_fake_operators();
  const auto steps = [](at::Device device, int64_t& waits) {
    TwoLayers network(device);
    const optim::OptimizerRegistry optimizers = optim::built_in_optimizers();
    const auto optimizer =
        optimizers.build(config::Component(optimizers, "adamw"), network.parameters());
    TrainStep step(network, *optimizer, {.clip_grad_norm = 1.0});
    std::vector<std::pair<at::Tensor, at::Tensor>> batches;
    seed_step(1, 0, at::kCPU);
    for (int i = 0; i < 5; ++i) batches.emplace_back(images(6).to(device), labels(6).to(device));
    const int64_t before = data::host_waits();
    std::vector<double> numbers;
    const auto take = [&] {
      const StepResult result = step.take();
      numbers.push_back(result.tally.loss());
      numbers.push_back(result.gradient_norm);
      numbers.push_back(static_cast<double>(result.tally.top1));
    };
    for (int64_t i = 0; i < 5; ++i) {
      const auto& [input, target] = batches[static_cast<size_t>(i)];
      step.start(labeled(input, target), i, 0.1, /*count_correct=*/i == 3);
      if (device.is_cpu()) take();
    }
    waits = data::host_waits() - before;
    while (numbers.size() < 15) take();
    EXPECT_EQ(data::host_waits() - before, device.is_cpu() ? 0 : 5);
    return numbers;
  };
  int64_t waits = 0;
  const auto wanted = steps(at::kCPU, waits);
  const auto found = steps(data::fake_accelerator(), waits);
  EXPECT_EQ(waits, 0);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
}

// In a separate process, because autograd must know a device from the start.
TEST(TrainStepDeathTest, StepsOnADeviceWaitForNothingUntilAResultIsTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    compare_steps_on_a_device();
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// The gradients are those of a step at manually perturbed weights.
TEST(TrainStep, SamTakesTheGradientsOfWeightsUphill) {
  seed_step(1, 0, at::kCPU);
  const at::Tensor input = images(9), target = labels(9);
  const double distance = 0.3;
  Fixture moved;
  TrainStep first(*moved.model, *moved.optimizer, {});
  const StepResult plain = first.run(labeled(input, target), 0, 0.0, false);
  double squares = 0;
  for (const at::Tensor& gradient : moved.gradients()) {
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  {
    const at::NoGradGuard no_grad;
    for (const auto& parameter : moved.model->parameters()) {
      parameter.tensor.add_(parameter.tensor.grad() * (distance / std::sqrt(squares)));
    }
  }
  const StepResult perturbed = first.run(labeled(input, target), 0, 0.0, false);
  EXPECT_GT(perturbed.tally.loss(), plain.tally.loss());

  Fixture fixture;
  std::vector<at::Tensor> before;
  for (const auto& parameter : fixture.model->parameters()) {
    before.push_back(parameter.tensor.detach().clone());
  }
  TrainStep step(*fixture.model, *fixture.optimizer, {.sam = distance});
  const StepResult result = step.run(labeled(input, target), 0, 0.0, false);
  EXPECT_EQ(result.tally.loss(), plain.tally.loss());
  EXPECT_NEAR(result.gradient_norm, perturbed.gradient_norm, 1e-6);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::allclose(fixture.gradients()[i], moved.gradients()[i], 1e-5, 1e-7));
    EXPECT_TRUE(at::equal(fixture.model->parameters()[i].tensor, before[i]));
  }
}

// A label smoothing scheduled at each step equals the same value in the config.
TEST(Scheduled, LabelSmoothingIsThatOfTheConfig) {
  const Case tested{"mlp", [] { return make_mlp({.hidden = {16}}, kImages, 1); }, "sgd"};
  const Case text{"gpt",
                  [] { return make_gpt({.layers = 1, .width = 12, .heads = 2}, kText, 1); },
                  "sgd",
                  {},
                  true};
  for (const Case& one : {tested, text}) {
    auto [input, target] = batch_of(one, 6);
    target.select(0, 2).fill_(data::kIgnoredTarget);
    for (const double smoothing : {0.0, 0.1, 0.9}) {
      Case fixed = one, scheduled = one;
      fixed.config.loss = cross_entropy_loss(smoothing);
      scheduled.config.scheduled = {ScheduledParameter::kLabelSmoothing};
      Trainee first(fixed, std::nullopt), second(scheduled, std::nullopt);
      const StepResult wanted = first.step->run(labeled(input, target), 0, 0.1, true);
      const StepResult got = second.step->run(labeled(input, target), 0, 0.1, true, {smoothing});
      EXPECT_NEAR(got.tally.loss(), wanted.tally.loss(), 1e-5) << one.name << smoothing;
      EXPECT_NEAR(got.gradient_norm, wanted.gradient_norm, 1e-5) << one.name << smoothing;
      EXPECT_EQ(got.tally.top1, wanted.tally.top1);
    }
  }
}

// Steps with an option of an optimizer set by the schedule or by the config.
NamedTensors after_steps_of(const std::string& optimizer, const config::Node& options,
                            const std::vector<ScheduledParameter>& scheduled,
                            const std::vector<double>& values) {
  seed_step(11, 0, at::kCPU);
  const auto registry = optim::built_in_optimizers();
  const auto model = make_mlp({.hidden = {16}}, kImages, 1);
  config::Component component(registry, optimizer);
  config::Problems problems;
  config::read_fields(
      options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  const auto made = registry.build(component, model->parameters());
  TrainStep step(*model, *made, {.scheduled = scheduled});
  for (int64_t i = 0; i < 10; ++i) {
    const auto [input, target] = batch_of({"mlp", nullptr, optimizer}, 6);
    step.run(labeled(input, target), i, 0.01, false, values);
  }
  NamedTensors after;
  for (const auto& [name, tensor] : model->parameters()) after.push_back({name, tensor.detach()});
  return after;
}

// Every option that an optimizer can schedule equals the same value in the recipe.
TEST(Scheduled, OptionsOfEveryOptimizerAreThoseOfTheRecipe) {
  const auto registry = optim::built_in_optimizers();
  for (const std::string& name : registry.names()) {
    NamedTensors parameters = {{"layer.weight", at::ones({2, 2})}};
    const auto optimizer = registry.build(config::Component(registry, name), parameters);
    struct Tried {
      optim::ScheduledOption option;
      ScheduledParameter value;
      std::vector<const char*> keys;
    };
    for (const auto& [option, value, keys] :
         {Tried{optim::ScheduledOption::kMomentum,
                ScheduledParameter::kMomentum,
                {"momentum", "beta1"}},
          Tried{optim::ScheduledOption::kBeta2, ScheduledParameter::kBeta2, {"beta2"}},
          Tried{optim::ScheduledOption::kWeightDecay,
                ScheduledParameter::kWeightDecay,
                {"weight_decay"}}}) {
      if (!optimizer->can_schedule(option)) continue;
      config::Component component(registry, name);
      const config::Node all = config::write_fields(
          [&](config::Visitor& visitor) { component.visit_fields(visitor); }, {});
      // Muon with scheduled options uses operators, the others use kernels, which sum in a
      // different order.
      const bool has_products = all.find("ns_precision") != nullptr;
      const double tolerance = has_products ? 1e-4 : 1e-6;
      config::Node plain;
      if (has_products) plain.at_or_add("ns_precision", {}) = config::Node::make_scalar("fp32");
      config::Node options = plain;
      for (const char* key : keys) {
        if (all.find(key) != nullptr)
          options.at_or_add(key, {}) = config::Node::make_scalar("0.75");
      }
      const NamedTensors wanted = after_steps_of(name, options, {}, {}),
                         got = after_steps_of(name, plain, {value}, {0.75}),
                         other = after_steps_of(name, plain, {value}, {0.5});
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(at::allclose(got[i].tensor, wanted[i].tensor, tolerance, tolerance / 10))
            << name << ' ' << name_of(value) << ' ' << wanted[i].name;
      }
      EXPECT_FALSE(at::equal(got[0].tensor, other[0].tensor)) << name << ' ' << name_of(value);
    }
  }
}

TEST(Scheduled, DropoutIsThatOfTheModel) {
  const auto weights_after = [](double of_model, const std::vector<double>& scheduled) {
    seed_step(12, 0, at::kCPU);
    const auto optimizers = optim::built_in_optimizers();
    const auto model = make_mlp({.hidden = {64}, .dropout = of_model}, kImages, 1);
    const auto optimizer =
        optimizers.build(config::Component(optimizers, "sgd"), model->parameters());
    StepConfig config;
    if (!scheduled.empty()) config.scheduled = {ScheduledParameter::kDropout};
    TrainStep step(*model, *optimizer, config);
    const auto [input, target] = batch_of({"mlp", nullptr, "sgd"}, 6);
    for (int64_t i = 0; i < 3; ++i) step.run(labeled(input, target), i, 0.1, false, scheduled);
    return model->parameters().front().tensor.detach().clone();
  };
  EXPECT_TRUE(at::equal(weights_after(0.25, {}), weights_after(0.5, {0.25})));
  EXPECT_FALSE(at::equal(weights_after(0.25, {}), weights_after(0.25, {0.5})));
  EXPECT_TRUE(at::equal(weights_after(0, {}), weights_after(0.5, {0})));
}

TEST(Scheduled, ValuesAreGivenForEachOfThem) {
  Case tested{"mlp", [] { return make_mlp({.hidden = {16}}, kImages, 1); }, "sgd"};
  const auto [input, target] = batch_of(tested, 6);
  EXPECT_THROW(
      Trainee(tested, std::nullopt).step->run(labeled(input, target), 0, 0.1, false, {0.1}),
      InternalError);
  tested.config.scheduled = {ScheduledParameter::kLabelSmoothing};
  EXPECT_THROW(Trainee(tested, std::nullopt).step->run(labeled(input, target), 0, 0.1, false),
               InternalError);
}

}  // namespace
}  // namespace gallop::train
