#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/optim/adam.h"
#include "gallop/optim/gradients.h"
#include "gallop/optim/sgd.h"
#include "unit/optim/wrapped.h"

namespace gallop::optim {
namespace {

at::Tensor fp32(double value) { return at::scalar_tensor(value, at::TensorOptions(c10::kFloat)); }

at::Tensor numbers(at::IntArrayRef shape, double scale) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(1, count + 1, at::TensorOptions(c10::kFloat)).mul(scale).sin().reshape(shape);
}

NamedTensors two_parameters() {
  return {{"weight", numbers({3, 5}, 0.3)}, {"bias", numbers({5}, 0.7)}};
}

void set_gradients(NamedTensors& parameters, double scale) {
  for (auto& [name, tensor] : parameters) {
    tensor.mutable_grad() = numbers(tensor.sizes(), scale).to(tensor.scalar_type());
  }
}

template <typename Make, typename Config>
std::string error_of(Make make, const Config& config, const NamedTensors& parameters) {
  try {
    make(config, parameters);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Sgd, FollowsItsFormula) {
  NamedTensors parameters = two_parameters();
  const at::Tensor p = parameters[0].tensor.clone();
  const auto optimizer =
      make_sgd({.lr = 9, .momentum = 0.5, .nesterov = true, .weight_decay = 0.25}, parameters);
  EXPECT_EQ(optimizer->base_lr(), 9);
  set_gradients(parameters, 0.1);
  optimizer->step(fp32(0.5));
  const at::Tensor g1 = numbers({3, 5}, 0.1).add(p, 0.25);
  const at::Tensor p1 = p - 0.5 * (g1 + 0.5 * g1);
  EXPECT_TRUE(at::allclose(parameters[0].tensor, p1, 1e-6, 1e-7));
  set_gradients(parameters, 0.2);
  optimizer->step(fp32(0.5));
  const at::Tensor g2 = numbers({3, 5}, 0.2).add(p1, 0.25);
  const at::Tensor m2 = 0.5 * g1 + g2;
  EXPECT_TRUE(at::allclose(parameters[0].tensor, p1 - 0.5 * (g2 + 0.5 * m2), 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(optimizer->state()[0].tensor, m2, 1e-6, 1e-7));
}

TEST(Sgd, DampeningSkipsTheFirstStepOfEachParameter) {
  NamedTensors parameters = two_parameters();
  const auto optimizer = make_sgd({.momentum = 0.5, .dampening = 0.25}, parameters);
  set_gradients(parameters, 0.1);
  parameters[1].tensor.mutable_grad().reset();
  optimizer->step(fp32(0.5));
  const NamedTensors state = optimizer->state();
  EXPECT_TRUE(at::equal(state[0].tensor, numbers({3, 5}, 0.1)));
  EXPECT_TRUE(at::equal(state[2].tensor, at::tensor({1.0f, 0.0f})));
  set_gradients(parameters, 0.1);
  optimizer->step(fp32(0.5));
  EXPECT_TRUE(at::allclose(state[0].tensor, 1.25 * numbers({3, 5}, 0.1), 1e-6, 1e-7));
  EXPECT_TRUE(at::equal(state[1].tensor, numbers({5}, 0.1)));
  EXPECT_TRUE(at::equal(state[2].tensor, at::tensor({2.0f, 1.0f})));
}

TEST(Sgd, CanExcludeBiasesFromWeightDecay) {
  NamedTensors parameters = two_parameters();
  const NamedTensors before = {{"weight", parameters[0].tensor.clone()},
                               {"bias", parameters[1].tensor.clone()}};
  const auto optimizer =
      make_sgd({.momentum = 0, .weight_decay = 0.5, .decay_1d = false}, parameters);
  EXPECT_TRUE(optimizer->state().empty());
  set_gradients(parameters, 0);
  optimizer->step(fp32(0.5));
  EXPECT_TRUE(at::allclose(parameters[0].tensor, before[0].tensor * 0.75));
  EXPECT_TRUE(at::equal(parameters[1].tensor, before[1].tensor));
}

TEST(Sgd, RejectsContradictingOptions) {
  const NamedTensors parameters = two_parameters();
  EXPECT_NE(error_of(make_sgd, SgdConfig{.momentum = 0, .nesterov = true}, parameters)
                .find("nesterov requires a momentum above 0"),
            std::string::npos);
  EXPECT_NE(error_of(make_sgd, SgdConfig{.dampening = 0.1, .nesterov = true}, parameters)
                .find("nesterov requires zero dampening"),
            std::string::npos);
  EXPECT_NE(error_of(make_sgd, SgdConfig{.momentum = 0, .dampening = 0.1}, parameters)
                .find("dampening requires a momentum above 0"),
            std::string::npos);
}

TEST(Adamw, FollowsItsFormula) {
  NamedTensors parameters = two_parameters();
  const auto optimizer =
      make_adamw({.beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.25, .decay_1d = false},
                 parameters);
  at::Tensor p = parameters[0].tensor.clone();
  at::Tensor m = at::Tensor(p * 0);
  at::Tensor v = at::Tensor(p * 0);
  for (int t = 1; t <= 3; ++t) {
    const at::Tensor g = numbers({3, 5}, 0.1 * t);
    p = p - 0.5 * 0.25 * p;
    m = 0.8 * m + (1 - 0.8) * g;
    v = 0.9 * v + (1 - 0.9) * g * g;
    p = p - 0.5 * (m / (1 - std::pow(0.8, t))) / ((v / (1 - std::pow(0.9, t))).sqrt() + 1e-3);
    set_gradients(parameters, 0.1 * t);
    optimizer->step(fp32(0.5));
  }
  EXPECT_TRUE(at::allclose(parameters[0].tensor, p, 1e-5, 1e-6));
  const NamedTensors state = optimizer->state();
  ASSERT_EQ(state.size(), 5u);
  EXPECT_EQ(state[0].name, "exp_avg.weight");
  EXPECT_EQ(state[3].name, "exp_avg_sq.bias");
  EXPECT_EQ(state[4].name, "step");
  EXPECT_TRUE(at::equal(state[4].tensor, at::tensor({3.0f, 3.0f})));
}

TEST(Adamw, CountsStepsOfEachParameter) {
  NamedTensors parameters = two_parameters();
  const auto optimizer = make_adamw({}, parameters);
  set_gradients(parameters, 0.1);
  parameters[0].tensor.mutable_grad().reset();
  const at::Tensor before = parameters[0].tensor.clone();
  optimizer->step(fp32(0.1));
  EXPECT_TRUE(at::equal(parameters[0].tensor, before));
  EXPECT_TRUE(at::equal(optimizer->state().back().tensor, at::tensor({0.0f, 1.0f})));
}

// By name, with defaults, in some wrappers.
struct Make {
  std::string name, optimizer, wrappers;
  std::unique_ptr<Optimizer> operator()(const NamedTensors& parameters) const {
    return make_wrapped(optimizer, wrappers, parameters, {}, kHundredSteps);
  }
};

void PrintTo(const Make& make, std::ostream* out) { *out << make.name; }

std::vector<Make> every_optimizer() {
  std::vector<Make> all;
  for (const std::string& name : built_in_optimizers().names()) {
    for (const auto& [wrapping, wrappers] : every_wrapping()) {
      if (can_wrap(name, wrappers)) all.push_back({name + wrapping, name, wrappers});
    }
  }
  return all;
}

class EveryOptimizer : public testing::TestWithParam<Make> {};

TEST_P(EveryOptimizer, DividesByTheGradientScale) {
  NamedTensors plain = two_parameters();
  NamedTensors scaled = two_parameters();
  const auto a = GetParam()(plain);
  const auto b = GetParam()(scaled);
  set_gradients(plain, 0.3);
  set_gradients(scaled, 0.3);
  for (auto& parameter : scaled) parameter.tensor.mutable_grad().mul_(1024);
  a->step(fp32(0.1));
  b->step(fp32(0.1), fp32(1024), fp32(0));
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(at::equal(plain[i].tensor, scaled[i].tensor));
  }
}

TEST_P(EveryOptimizer, SkipsTheUpdateIfFoundInfIsSet) {
  for (const double found : {1.0, 3.0}) {
    NamedTensors parameters = two_parameters();
    const auto optimizer = GetParam()(parameters);
    set_gradients(parameters, 0.3);
    optimizer->step(fp32(0.1));
    NamedTensors before;
    for (const auto& [name, tensor] : parameters) before.push_back({name, tensor.clone()});
    for (const auto& [name, tensor] : optimizer->state()) before.push_back({name, tensor.clone()});
    parameters[0].tensor.mutable_grad().fill_(std::numeric_limits<float>::infinity());
    optimizer->step(fp32(0.1), fp32(1024), fp32(found));
    NamedTensors after = parameters;
    for (const auto& item : optimizer->state()) after.push_back(item);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(before[i].tensor, after[i].tensor)) << before[i].name;
    }
  }
}

TEST_P(EveryOptimizer, ContinuesExactlyFromCopiedState) {
  NamedTensors original = two_parameters();
  const auto first = GetParam()(original);
  for (int i = 1; i <= 3; ++i) {
    set_gradients(original, 0.1 * i);
    first->step(fp32(0.1));
  }
  NamedTensors copy;
  for (const auto& [name, tensor] : original) copy.push_back({name, tensor.clone()});
  const auto second = GetParam()(copy);
  const NamedTensors from = first->state();
  const NamedTensors to = second->state();
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  for (NamedTensors* parameters : {&original, &copy}) set_gradients(*parameters, 0.9);
  first->step(fp32(0.1));
  second->step(fp32(0.1));
  for (size_t i = 0; i < copy.size(); ++i) {
    EXPECT_TRUE(at::equal(original[i].tensor, copy[i].tensor));
  }
}

TEST_P(EveryOptimizer, IsBitIdenticalForAnyMemoryLayout) {
  // The kernels walk through raw memory, so a gradient in another layout would be applied wrongly.
  const at::Tensor weight = numbers({4, 3, 5, 5}, 0.3);
  const at::Tensor gradient = numbers({4, 3, 5, 5}, 0.9);
  std::vector<at::Tensor> results;
  for (const auto& [of_weight, of_gradient] :
       {std::pair(at::MemoryFormat::Contiguous, at::MemoryFormat::Contiguous),
        std::pair(at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast),
        std::pair(at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous),
        std::pair(at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast)}) {
    NamedTensors parameters = {{"weight", weight.clone().contiguous(of_weight)}};
    const auto optimizer = GetParam()(parameters);
    for (int i = 0; i < 2; ++i) {
      parameters[0].tensor.mutable_grad() = gradient.clone().contiguous(of_gradient);
      optimizer->step(fp32(0.1));
    }
    results.push_back(parameters[0].tensor.contiguous());
    EXPECT_TRUE(at::allclose(results.back(), results.front(), 1e-6, 1e-7));
  }
}

TEST_P(EveryOptimizer, ReportsInvalidParameters) {
  const auto error = [](const NamedTensors& parameters) -> std::string {
    try {
      GetParam()(parameters);
    } catch (const UsageError& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_NE(error({}).find("needs at least one parameter"), std::string::npos);
  EXPECT_NE(error({{"a", fp32(1)}, {"a", fp32(1)}}).find("duplicate parameter name 'a'"),
            std::string::npos);
  EXPECT_NE(error({{"h", fp32(1).to(c10::kHalf)}}).find("'h' is Half"), std::string::npos);
  EXPECT_NE(error({{"a", fp32(1)}, {"d", fp32(1).to(c10::kDouble)}}).find("'d' is Double"),
            std::string::npos);
  EXPECT_NE(error({{"v", at::ones({4, 4}).slice(1, 0, 2)}}).find("'v' is a view"),
            std::string::npos);
}

TEST_P(EveryOptimizer, RejectsOrFollowsAModelThatMoved) {
  std::vector<at::Tensor> results;
  bool refused = false;
  for (const bool moves : {false, true}) {
    NamedTensors parameters = {{"w", numbers({4, 3, 5, 5}, 0.3)}};
    const auto optimizer = GetParam()(parameters);
    const at::Tensor& w = parameters[0].tensor;
    w.mutable_grad() = numbers({4, 3, 5, 5}, 0.1);
    if (moves) w.set_data(w.contiguous(at::MemoryFormat::ChannelsLast));
    try {
      optimizer->step(fp32(0.1));
    } catch (const UsageError& error) {
      refused =
          moves && std::string(error.what()).find("move the model first") != std::string::npos;
    }
    results.push_back(w.contiguous());
  }
  EXPECT_TRUE(refused || at::allclose(results[0], results[1], 1e-6, 1e-7));
}

TEST_P(EveryOptimizer, RejectsSparseGradients) {
  NamedTensors matrix = {{"m", numbers({4, 4}, 0.3)}};
  const auto other = GetParam()(matrix);
  matrix[0].tensor.mutable_grad() = at::ones({4, 4}).to_sparse();
  EXPECT_THROW(other->step(fp32(0.1)), UsageError);
}

TEST_P(EveryOptimizer, DependsOnlyOnFoundInf) {
  NamedTensors parameters = two_parameters();
  const auto optimizer = GetParam()(parameters);
  set_gradients(parameters, 0.1);
  const at::Tensor before = parameters[0].tensor.clone();
  const at::Tensor norm = optimizer->step(fp32(0.1), {}, fp32(NAN));
  if (norm.defined()) {
    EXPECT_TRUE(at::equal(norm, gradient_norm(gradients_of(parameters))));
  }
  EXPECT_TRUE(at::equal(parameters[0].tensor, before));
  optimizer->step(fp32(0.1), {}, fp32(0));
  EXPECT_FALSE(at::equal(parameters[0].tensor, before));
}

TEST_P(EveryOptimizer, ReturnsTheNormOfTheOriginalGradients) {
  NamedTensors parameters = two_parameters();
  const auto optimizer = GetParam()(parameters);
  for (const double scale : {1.0, 3.0}) {
    set_gradients(parameters, 0.3);
    const at::Tensor wanted = gradient_norm(gradients_of(parameters));
    const at::Tensor norm = optimizer->step(fp32(0.1), fp32(scale));
    if (norm.defined()) {
      EXPECT_TRUE(at::equal(norm, wanted));
    }
  }
  for (auto& parameter : parameters) parameter.tensor.mutable_grad().reset();
  const at::Tensor none = optimizer->step(fp32(0.1));
  if (none.defined()) {
    EXPECT_EQ(none.item<double>(), 0);
  }
}

TEST_P(EveryOptimizer, UpdatesFp64Parameters) {
  NamedTensors single = two_parameters(), twice;
  for (const auto& [name, tensor] : single) twice.push_back({name, tensor.to(c10::kDouble)});
  const auto ours = GetParam()(single), theirs = GetParam()(twice);
  for (int i = 1; i <= 20; ++i) {
    for (NamedTensors* parameters : {&single, &twice})
      set_gradients(*parameters, 0.1 * (i % 7 - 3));
    ours->step(fp32(0.1), fp32(2));
    EXPECT_FALSE(theirs->step(fp32(0.1), fp32(2)).defined());
  }
  for (size_t i = 0; i < single.size(); ++i) {
    EXPECT_TRUE(at::allclose(single[i].tensor.to(c10::kDouble), twice[i].tensor, 1e-5, 1e-6));
  }
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, EveryOptimizer, testing::ValuesIn(every_optimizer()),
                         [](const auto& made) {
                           std::string name = made.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace gallop::optim
