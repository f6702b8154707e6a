#include "gallop/train/distillation.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/mlp.h"
#include "gallop/train/step/seed.h"
#include "gallop/train/step/step.h"
#include "unit/train/labeled.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

at::Tensor numbers(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).mul(3); }

// The formulas of the paper, in fp64.
TEST(Distillation, HasTheFormulasValueAndGradient) {
  seed_step(1, 0, at::kCPU);
  const at::Tensor target = at::randint(7, {12}, at::kLong);
  for (const double temperature : {0.5, 1.0, 4.0}) {
    const at::Tensor student = numbers({12, 7}).requires_grad_(), teacher = numbers({12, 7});
    const at::Tensor q = (teacher / temperature).softmax(1);
    const at::Tensor p = (student.detach() / temperature).softmax(1);
    const at::Tensor sum = distillation_sum(student, teacher, target, temperature);
    const auto divergence = (q * (q.log() - p.log())).sum().item<double>();
    EXPECT_NEAR(sum.item<double>(), temperature * temperature * divergence, 1e-10 * divergence);
    sum.backward();
    EXPECT_TRUE(at::allclose(student.grad(), (p - q) * temperature, 1e-12, 1e-12));
  }
}

TEST(Distillation, IsNothingWhereBothAgree) {
  const at::Tensor logits = at::randn({3, 5, 7}), target = at::randint(7, {3, 5}, at::kLong);
  EXPECT_NEAR(distillation_sum(logits, logits, target, 2).item<double>(), 0, 1e-5);
}

TEST(Distillation, LeavesOutTargetsThatDoNotCount) {
  const at::Tensor target = at::randint(7, {4, 5}, at::kLong);
  target[0].fill_(data::kIgnoredTarget);
  const at::Tensor student = numbers({4, 5, 7}).requires_grad_(), teacher = numbers({4, 5, 7});
  const at::Tensor sum = distillation_sum(student, teacher, target, 2);
  const at::Tensor rest =
      distillation_sum(student.detach().slice(0, 1), teacher.slice(0, 1), target.slice(0, 1), 2);
  EXPECT_NEAR(sum.item<double>(), rest.item<double>(), 1e-9);
  sum.backward();
  EXPECT_EQ(student.grad()[0].abs().sum().item<double>(), 0);
}

// A step without an update, so that the gradients can be inspected.
TEST(Distillation, MixesBothLossesInAStepAndLeavesTheTeacherAlone) {
  seed_step(2, 0, at::kCPU);
  constexpr double kWeight = 0.3, kTemperature = 3, kSmoothing = 0.1;
  const auto teacher = make_mlp({.hidden = {20}, .dropout = 0.5}, kImages, 9);
  for (const auto& parameter : teacher->parameters()) parameter.tensor.set_requires_grad(false);
  teacher->set_training(false);
  const Case tested{"Mlp",
                    [] { return make_mlp({.hidden = {16}}, kImages, 1); },
                    "sgd",
                    {.gradient_accumulation = 2,
                     .loss = cross_entropy_loss(kSmoothing),
                     .distill = Distillation{teacher.get(), kTemperature, kWeight}}};
  Trainee trainee(tested, std::nullopt);
  const auto [input, target] = batch_of(tested, 7);
  const StepResult result = trainee.step->run(labeled(input, target), 0, 0, true);

  const auto plain = tested.make_model();
  const at::Tensor student = plain->forward(input), taught = teacher->forward(input);
  const at::Tensor hard =
      at::cross_entropy_loss(student, target, {}, at::Reduction::Sum, -100, kSmoothing);
  const at::Tensor q = (taught / kTemperature).softmax(1);
  const at::Tensor soft = (q * (q.log() - (student / kTemperature).log_softmax(1))).sum();
  const at::Tensor loss = (1 - kWeight) * hard + kWeight * kTemperature * kTemperature * soft;
  EXPECT_NEAR(result.tally.loss_sum, loss.item<double>(), 1e-4);
  EXPECT_EQ(result.tally.top1, student.argmax(1).eq(target).sum().item<int64_t>());
  loss.div(7).backward();
  const auto wanted = plain->parameters(), found = trainee.model->parameters();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i].tensor.grad(), wanted[i].tensor.grad(), 1e-4, 1e-6))
        << wanted[i].name;
  }
  for (const auto& [name, tensor] : teacher->parameters()) {
    EXPECT_FALSE(tensor.grad().defined()) << name;
  }
  for (const auto& [name, tensor] : trainee.everything()) {
    EXPECT_FALSE(name.starts_with("teacher.")) << "is no part of checkpoints";
  }
}

TEST(Distillation, NeedsATeacher) {
  EXPECT_NO_THROW(check(DistillConfig{}));
  EXPECT_NO_THROW(check(DistillConfig{.teacher = "a", .temperature = 3}));
  EXPECT_THROW(check(DistillConfig{.temperature = 3}), UsageError);
  EXPECT_THROW(check(DistillConfig{.weight = 1}), UsageError);
}

}  // namespace
}  // namespace gallop::train
