// Steps and evaluations over fields other than one input and one class.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/data/tensor_samples.h"
#include "gallop/model/mlp.h"
#include "gallop/train/evaluate.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/step/step.h"
#include "unit/config/component_of.h"

namespace gallop::train {
namespace {

const model::Task kNumbers{
    .kind = model::Task::Kind::kNumbers, .classes = 2, .features = 3, .per_element = false};

std::shared_ptr<const Loss> mse() {
  static const LossRegistry kLosses = built_in_losses();
  return build_loss(kLosses, config::component_of(kLosses, "mse"),
                    {.output_sizes = {2}, .target_sizes = {2}, .target_type = at::kFloat});
}

struct Regression {
  std::unique_ptr<model::Model> model = make_mlp({.hidden = {8}}, kNumbers, 1);
  optim::OptimizerRegistry optimizers = optim::built_in_optimizers();
  std::unique_ptr<optim::Optimizer> optimizer =
      optimizers.build(config::component_of(optimizers, "sgd"), model->parameters());
  at::Tensor input = at::randn({10, 3}), target = at::randn({10, 2});
  at::Tensor weight = at::rand({10, 2}) + 0.1;
};

TEST(FieldStep, WeightsOfABatchAreReadByTheirName) {
  for (const bool compiles : {false, true}) {
    Regression one;
    StepConfig config{.loss = mse(), .has_weights = true};
    if (compiles) config.compile = compile::CompileConfig();
    TrainStep step(*one.model, *one.optimizer, config);
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor outputs = one.model->forward(one.input).detach();
      const at::Tensor wanted =
          outputs.sub(one.target).square().mul(one.weight).sum().div(one.weight.sum());
      const StepResult result = step.run(
          {{"input", one.input}, {"target", one.target}, {"weight", one.weight}}, i, 0.1, false);
      EXPECT_NEAR(result.tally.loss(), wanted.item<double>(), 1e-5);
      EXPECT_FALSE(result.has_class_labels);
    }
  }
}

TEST(FieldStep, BatchesKeepTheirFields) {
  Regression one;
  TrainStep step(*one.model, *one.optimizer, {.loss = mse()});
  step.run({{"input", one.input}, {"target", one.target}}, 0, 0.1, false);
  EXPECT_THROW(step.run({{"input", one.input}, {"target", one.target}, {"weight", one.weight}}, 1,
                        0.1, false),
               InternalError);
  EXPECT_THROW(step.run({{"target", one.target}, {"input", one.input}}, 1, 0.1, false),
               InternalError);
}

TEST(FieldStep, FieldsBesidesTheTargetHaveAnyNamesAndTheTargetAnyPlace) {
  Regression one;
  TrainStep step(*one.model, *one.optimizer, {.loss = mse()});
  const at::Tensor outputs = one.model->forward(one.input).detach();
  const StepResult result = step.run(
      {{"signal", one.input}, {"group", at::arange(10)}, {"target", one.target}}, 0, 0.1, false);
  EXPECT_NEAR(result.tally.loss(), at::mse_loss(outputs, one.target).item<double>(), 1e-5);
}

TEST(Evaluate, ReportsTheLossOfNumbersForAnyBatches) {
  Regression one;
  const data::TensorSamples samples(one.input, one.target);
  static const MetricRegistry kMetrics = built_in_metrics();
  MetricChoice choice(kMetrics);
  choice.deciding = config::component_of(kMetrics, "loss");
  choice.further.items.push_back(config::component_of(kMetrics, "mae"));
  const auto metrics = std::make_shared<MetricSet>(
      kMetrics, choice, MetricTask{.target = MetricTask::Target::kNumbers, .classes = 2});
  const at::Tensor outputs = one.model->forward(one.input).detach();
  const double wanted = at::mse_loss(outputs, one.target).item<double>();
  const double absolute = outputs.sub(one.target).abs().mean().item<double>();
  const StopRequest go_on;
  for (const int64_t batch : {1, 3, 10}) {
    const auto found = evaluate(
        *one.model, samples,
        {.loader = {.batch = batch, .threads = 0}, .metrics = metrics, .loss = mse()}, go_on);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->tally.loss(), wanted, 1e-6);
    EXPECT_FALSE(found->has_classes);
    EXPECT_FALSE(found->value_of("accuracy"));
    EXPECT_NEAR(found->value_of("mae").value(), absolute, 1e-6);
    EXPECT_NEAR(found->value_of("loss").value(), wanted, 1e-6);
  }
}

TEST(Evaluate, EnsemblesOfNumbersAverageOutputs) {
  Regression one, other;
  const data::TensorSamples samples(one.input, one.target);
  static const MetricRegistry kMetrics = built_in_metrics();
  MetricChoice choice(kMetrics);
  choice.deciding = config::component_of(kMetrics, "loss");
  const auto metrics = std::make_shared<MetricSet>(
      kMetrics, choice, MetricTask{.target = MetricTask::Target::kNumbers, .classes = 2});
  const StopRequest go_on;
  const auto found = evaluate_ensemble(
      {{*one.model}, {*other.model}}, samples,
      {.loader = {.batch = 4, .threads = 0}, .metrics = metrics, .loss = mse()}, go_on);
  const at::Tensor mean =
      one.model->forward(one.input).add(other.model->forward(one.input)).detach().div(2);
  EXPECT_NEAR(found->ensemble.tally.loss(), at::mse_loss(mean, one.target).item<double>(), 1e-6);
}

}  // namespace
}  // namespace gallop::train
