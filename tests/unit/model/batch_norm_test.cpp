#include "gallop/model/functional/batch_norm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gallop/base/error.h"
#include "gallop/kernel/stock_operators.h"
#include "gallop/model/resnet.h"
#include "gallop/model/summary.h"

namespace gallop::model::functional {
namespace {

constexpr int64_t kChannels = 20;
const std::vector<int64_t> kSizes = {6, kChannels, 7, 5};

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}
at::Tensor image(uint64_t seed, at::MemoryFormat format = at::MemoryFormat::ChannelsLast) {
  return normal(kSizes, seed).contiguous(format);
}

struct Inputs {
  at::Tensor x = image(1), residual = image(2);
  at::Tensor factor = image(3), more_factor = image(4);
  kernel::BatchNormParameters parameters{.weight = normal({kChannels}, 5),
                                         .bias = normal({kChannels}, 6),
                                         .running_mean = at::zeros({kChannels}),
                                         .running_var = at::ones({kChannels})};
};

void require_gradients(Inputs& in) {
  for (auto* tensor : {&in.x, &in.residual, &in.parameters.weight, &in.parameters.bias}) {
    tensor->requires_grad_();
  }
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const char* name) {
  ASSERT_EQ(actual.defined(), expected.defined()) << name;
  if (!actual.defined()) return;
  EXPECT_LE((actual - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>())
      << name;
}

void expect_same_gradients(const Inputs& actual, const Inputs& expected) {
  expect_close(actual.x.grad(), expected.x.grad(), "x");
  expect_close(actual.residual.grad(), expected.residual.grad(), "residual");
  expect_close(actual.parameters.weight.grad(), expected.parameters.weight.grad(), "weight");
  expect_close(actual.parameters.bias.grad(), expected.parameters.bias.grad(), "bias");
  expect_close(actual.parameters.running_mean, expected.parameters.running_mean, "mean");
  expect_close(actual.parameters.running_var, expected.parameters.running_var, "variance");
}

at::Tensor stock(const Inputs& in, bool training, bool relu, bool residual) {
  const auto& p = in.parameters;
  auto y = at::batch_norm(in.x, p.weight, p.bias, p.running_mean, p.running_var, training,
                          p.momentum, p.eps, false);
  if (residual) y = y + in.residual;
  return relu ? y.relu() : y;
}

// LibTorch's operator divides by the number of values without one.
TEST(BatchNorm, OfASingleValueHasAVarianceOf0) {
  kernel::BatchNormParameters parameters = Inputs().parameters;
  for (const at::Tensor& x : {normal({1, kChannels}, 1), normal({1, kChannels, 1, 1}, 1)}) {
    parameters.running_mean = at::zeros({kChannels});
    parameters.running_var = at::full({kChannels}, 2.0);
    const kernel::StockOperatorsScope stock_operators;
    batch_norm(x, {}, parameters, {.training = true});
    EXPECT_TRUE(at::allclose(parameters.running_mean, x.flatten() * parameters.momentum));
    EXPECT_TRUE(
        at::allclose(parameters.running_var, at::full({kChannels}, 2 * (1 - parameters.momentum))));
  }
}

TEST(BatchNorm, HasTheGradientsOfTheStockOperators) {
  for (const bool training : {true, false}) {
    for (const auto& [relu, residual] : {std::pair(false, false), std::pair(true, false),
                                         std::pair(false, true), std::pair(true, true)}) {
      Inputs ours, theirs;
      require_gradients(ours);
      require_gradients(theirs);
      const auto y = batch_norm(ours.x, residual ? ours.residual : at::Tensor(), ours.parameters,
                                {.training = training, .relu = relu});
      const auto expected = stock(theirs, training, relu, residual);
      expect_close(y, expected, "y");
      EXPECT_EQ(y.strides(), ours.x.strides());
      (y * ours.factor).sum().backward();
      (expected * theirs.factor).sum().backward();
      expect_same_gradients(ours, theirs);
    }
  }
}

TEST(BatchNorm, GivesGradientsOnlyWhereWanted) {
  for (const int wanted : {0, 1, 2, 3}) {
    Inputs ours, theirs;
    for (auto* in : {&ours, &theirs}) {
      at::Tensor* const tensors[] = {&in->x, &in->residual, &in->parameters.weight,
                                     &in->parameters.bias};
      tensors[wanted]->requires_grad_();
    }
    const auto y = batch_norm(ours.x, ours.residual, ours.parameters, {.relu = true});
    (y * ours.factor).sum().backward();
    (stock(theirs, true, true, true) * theirs.factor).sum().backward();
    expect_same_gradients(ours, theirs);
  }
}

TEST(BatchNorm, AddsTheGradientsOfAFork) {
  // Both consumers, either one, or one that reads twice.
  for (const auto& [first, second] : {std::pair(1, 1), std::pair(1, 0), std::pair(0, 1)}) {
    for (const bool contiguous : {false, true}) {
      Inputs ours, theirs;
      const auto format =
          contiguous ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
      for (auto* in : {&ours, &theirs}) {
        in->x = image(1, format);
        require_gradients(*in);
      }
      const auto y = batch_norm_fork(ours.x, ours.residual, ours.parameters, {.relu = true});
      EXPECT_EQ(y.first.data_ptr(), y.second.data_ptr());
      const auto expected = stock(theirs, true, true, true);
      auto sum = at::zeros({}), expected_sum = at::zeros({});
      if (first) {
        sum = sum + (y.first * ours.factor).sum();
        expected_sum = expected_sum + (expected * ours.factor).sum();
      }
      if (second) {
        sum = sum + (y.second * ours.more_factor).sum() + y.second.square().sum();
        expected_sum = expected_sum + (expected * ours.more_factor).sum() + expected.square().sum();
      }
      sum.backward();
      expected_sum.backward();
      expect_same_gradients(ours, theirs);
    }
  }
}

TEST(BatchNorm, TakesAnyStridesOfResidualAndGradient) {
  Inputs ours, theirs;
  for (auto* in : {&ours, &theirs}) {
    in->residual = image(2, at::MemoryFormat::Contiguous);
    require_gradients(*in);
  }
  batch_norm(ours.x, ours.residual, ours.parameters, {.relu = true}).sum().backward();
  stock(theirs, true, true, true).sum().backward();
  expect_same_gradients(ours, theirs);
}

TEST(BatchNorm, LeavesTheRestToTheLibrary) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    Inputs ours, theirs;
    for (auto* in : {&ours, &theirs}) {
      auto& p = in->parameters;
      for (auto* tensor : {&in->x, &in->residual, &in->factor, &p.weight, &p.bias, &p.running_mean,
                           &p.running_var}) {
        *tensor = tensor->to(type).contiguous();
      }
      require_gradients(*in);
    }
    const auto y = batch_norm(ours.x, ours.residual, ours.parameters, {.relu = true});
    EXPECT_TRUE(y.is_contiguous());
    (y * ours.factor).sum().backward();
    (stock(theirs, true, true, true) * theirs.factor).sum().backward();
    expect_same_gradients(ours, theirs);
  }
}

TEST(BatchNorm, RecordsNothingWithoutGradients) {
  Inputs in;
  require_gradients(in);
  const at::NoGradGuard guard;
  const auto y = batch_norm_fork(in.x, in.residual, in.parameters, {.relu = true});
  EXPECT_FALSE(y.first.requires_grad());
  Inputs fresh;
  expect_close(y.first, stock(fresh, true, true, true), "y");
}

TEST(BatchNorm, TellsAutogradThatItMovedTheStatistics) {
  Inputs in;
  require_gradients(in);
  const auto y = batch_norm(in.x, {}, in.parameters, {.training = false});
  batch_norm(in.x, {}, in.parameters, {.training = true});
  EXPECT_THROW(y.sum().backward(), c10::Error);
}

TEST(BatchNorm, RefusesSecondDerivatives) {
  Inputs in;
  require_gradients(in);
  const auto y = batch_norm(in.x, {}, in.parameters, {.relu = true});
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {in.x}, {}, true, /*create_graph=*/true),
               UsageError);
}

TEST(BatchNorm, IsSeenByTheSummary) {
  const Task task{
      .kind = Task::Kind::kImages, .channels = 3, .height = 8, .width = 8, .classes = 10};
  const auto model = make_resnet({.depth = 8}, task, 1);
  model->to(at::kCPU, /*channels_last=*/true);
  for (const auto& layer : summarize(*model, task)) {
    EXPECT_NE(layer.type, "not used") << layer.name;
    if (layer.name == "bn1") {
      EXPECT_EQ(layer.output_sizes, (std::vector<int64_t>{1, 16, 8, 8}));
    }
  }
}

}  // namespace
}  // namespace gallop::model::functional
