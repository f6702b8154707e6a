// Optimizers of weights that are kept in bf16 alone. tests/unit/kernel/rounded_update_test.cpp
// holds how they round against plain loops.
#include <initializer_list>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/optim/gradients.h"
#include "unit/optim/wrapped.h"

namespace gallop::optim {
namespace {

at::Tensor fp32(double value) { return at::scalar_tensor(value, at::TensorOptions(c10::kFloat)); }

at::Tensor draws(int64_t step) { return at::tensor({int64_t{5}, step}, at::kLong); }

std::unique_ptr<Optimizer> build(const std::string& text, const NamedTensors& parameters) {
  return built(built_in_optimizers(), text, parameters);
}

// A matrix and its bias, after precision::keep_in_bf16().
NamedTensors parameters() {
  return {{"weight", at::randn({64, 128}).to(at::kBFloat16)}, {"bias", at::randn({64})}};
}

void set_gradients(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    tensor.mutable_grad() = at::randn(tensor.sizes(), tensor.options()).mul_(0.1);
  }
}

NamedTensors cloned(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy.push_back({name, tensor.clone()});
  return copy;
}

void expect_equal(const NamedTensors& found, const NamedTensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, wanted[i].name);
    EXPECT_EQ(found[i].tensor.scalar_type(), wanted[i].tensor.scalar_type());
    EXPECT_TRUE(at::equal(found[i].tensor, wanted[i].tensor)) << found[i].name;
  }
}

std::string error_of(const std::string& text, const NamedTensors& parameters) {
  try {
    build(text, parameters);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

// Weight, gradient and state, as docs/optimizers.md counts them.
double bytes_per_weight(const std::string& optimizer) {
  const int64_t count = 4096 * 256;
  const NamedTensors all = {{"weight", at::zeros({4096, 256}, at::kBFloat16)}};
  const auto made = build(optimizer, all);
  all[0].tensor.mutable_grad() = at::zeros({4096, 256}, at::kBFloat16);
  made->step(fp32(0.1), {}, {}, {.draws = draws(0)});
  auto bytes = static_cast<double>(all[0].tensor.nbytes() + all[0].tensor.grad().nbytes());
  for (const auto& [name, tensor] : made->state()) {
    if (name != "step" && name != "running") bytes += static_cast<double>(tensor.nbytes());
  }
  return bytes / static_cast<double>(count);
}

TEST(Bf16Weights, TakeTheDocumentedNumberOfBytes) {
  EXPECT_EQ(bytes_per_weight("sgd momentum=0"), 4);
  EXPECT_EQ(bytes_per_weight("sgd momentum=0.9"), 8);
  EXPECT_EQ(bytes_per_weight("sgd momentum=0.9 rounding=kahan"), 10);
  EXPECT_EQ(bytes_per_weight("lion"), 8);
  EXPECT_EQ(bytes_per_weight("adamw"), 12);
  EXPECT_EQ(bytes_per_weight("adamw rounding=nearest"), 12);
  EXPECT_EQ(bytes_per_weight("adamw rounding=kahan"), 14);
  EXPECT_NEAR(bytes_per_weight("adamw state_bits=8"), 6.03, 5e-3);
  EXPECT_NEAR(bytes_per_weight("adamw state_bits=8 rounding=kahan"), 8.03, 5e-3);
}

TEST(Bf16Weights, HaveFp32StatesAndBf16Compensation) {
  const NamedTensors all = parameters();
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : build("adamw rounding=kahan", all)->state()) {
    state.emplace(name, tensor);
  }
  EXPECT_EQ(state.at("exp_avg.weight").scalar_type(), at::kFloat);
  EXPECT_EQ(state.at("exp_avg_sq.weight").scalar_type(), at::kFloat);
  EXPECT_EQ(state.at("compensation.weight").scalar_type(), at::kBFloat16);
  EXPECT_EQ(state.at("compensation.weight").sizes(), all[0].tensor.sizes());
  EXPECT_EQ(state.count("compensation.bias"), 0u);
}

class Rounded : public testing::TestWithParam<const char*> {};

TEST_P(Rounded, ContinuesBitForBitFromCopiedState) {
  const NamedTensors original = parameters();
  const auto first = build(GetParam(), original);
  for (int64_t i = 0; i < 3; ++i) {
    set_gradients(original);
    first->step(fp32(0.01), {}, {}, {.draws = draws(i)});
  }
  const NamedTensors copy = cloned(original);
  const auto second = build(GetParam(), copy);
  const NamedTensors from = first->state(), to = second->state();
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  for (int64_t i = 3; i < 6; ++i) {
    set_gradients(original);
    for (size_t k = 0; k < copy.size(); ++k) {
      copy[k].tensor.mutable_grad() = original[k].tensor.grad().clone();
    }
    first->step(fp32(0.01), {}, {}, {.draws = draws(i)});
    second->step(fp32(0.01), {}, {}, {.draws = draws(i)});
  }
  expect_equal(copy, original);
  expect_equal(second->state(), first->state());
}

TEST_P(Rounded, SkippedStepsChangeNothing) {
  const NamedTensors all = parameters();
  const auto optimizer = build(GetParam(), all);
  set_gradients(all);
  optimizer->step(fp32(0.01), {}, {}, {.draws = draws(0)});
  const NamedTensors before = cloned(all), state = cloned(optimizer->state());
  all[0].tensor.mutable_grad().fill_(INFINITY);
  optimizer->step(fp32(0.01), fp32(1024), fp32(1), {.draws = draws(1)});
  expect_equal(all, before);
  expect_equal(optimizer->state(), state);
}

// Each number has the same part of the loss, and a learning rate that bf16 rounds away at the end.
TEST_P(Rounded, ReachesTheOptimumUnlessUpdatesAreLost) {
  at::manual_seed(3);
  const at::Tensor goal = at::randn({64, 128});
  const NamedTensors all = {{"weight", at::ones({64, 128}, at::kBFloat16)}};
  const auto optimizer = build(GetParam(), all);
  const at::Tensor& weight = all[0].tensor;
  const int64_t steps = 3000;
  // As far as steps of 1e-3 lead, each of which is below half the last place of 1.
  for (int64_t step = 0; step < steps; ++step) {
    weight.mutable_grad() = (weight.to(at::kFloat) - goal).sign().to(at::kBFloat16);
    optimizer->step(fp32(1e-3), {}, {}, {.draws = draws(step)});
  }
  const double apart = (weight.to(at::kFloat) - goal).abs().mean().item<double>();
  if (std::string(GetParam()).find("nearest") != std::string::npos) {
    EXPECT_GT(apart, 0.3);
  } else {
    EXPECT_LT(apart, 0.04);
  }
}

// Without momentum, so that a step is the learning rate in size.
INSTANTIATE_TEST_SUITE_P(, Rounded,
                         testing::Values("lion beta1=0 beta2=0",
                                         "lion beta1=0 beta2=0 rounding=kahan",
                                         "lion beta1=0 beta2=0 rounding=nearest", "sgd momentum=0",
                                         "sgd momentum=0 rounding=kahan",
                                         "sgd momentum=0 rounding=nearest"));

TEST(Bf16Weights, DrawsDependOnSeedAndStep) {
  const NamedTensors start = parameters();
  const auto updated = [&](int64_t seed, int64_t step) {
    NamedTensors all = cloned(start);
    const auto optimizer = build("sgd", all);
    for (const auto& [name, tensor] : all) tensor.mutable_grad() = at::full_like(tensor, 0.01);
    optimizer->step(fp32(0.1), {}, {}, {.draws = at::tensor({seed, step}, at::kLong)});
    return all[0].tensor;
  };
  EXPECT_TRUE(at::equal(updated(1, 2), updated(1, 2)));
  EXPECT_FALSE(at::equal(updated(1, 2), updated(1, 3)));
  EXPECT_FALSE(at::equal(updated(1, 2), updated(2, 2)));
  EXPECT_THROW(build("sgd", start)->step(fp32(0.1)), InternalError);
}

TEST(Bf16Weights, AreClippedAsInFp32) {
  const NamedTensors narrow = {{"a", at::randn({8, 32}).to(at::kBFloat16)},
                               {"b", at::randn({8, 4}).to(at::kBFloat16)}};
  NamedTensors wide;
  set_gradients(narrow);
  for (const auto& [name, tensor] : narrow) {
    wide.push_back({name, tensor.to(at::kFloat)});
    wide.back().tensor.mutable_grad() = tensor.grad().to(at::kFloat);
  }
  EXPECT_EQ(gradient_norm(gradients_of(narrow)).item<double>(),
            gradient_norm(gradients_of(wide)).item<double>());
  for (const NamedTensors* all : std::initializer_list<const NamedTensors*>{&narrow, &wide}) {
    clip_adaptively(*all, 0.01);
    clip_values(gradients_of(*all), 0.005);
  }
  for (size_t i = 0; i < 2; ++i) {
    const at::Tensor found = narrow[i].tensor.grad();
    EXPECT_EQ(found.scalar_type(), at::kBFloat16);
    // Rounded twice.
    EXPECT_LE((found.to(at::kFloat) - wide[i].tensor.grad()).abs().max().item<double>(), 4e-5);
  }
}

TEST(Bf16Weights, HaveFp32AveragesUnaffectedByEvaluations) {
  const auto averaged = [](bool evaluates) {
    at::manual_seed(1);
    const NamedTensors all = parameters();
    const auto optimizer = make_wrapped("sgd", "[{ema: {decay: 0.99}}]", all, {}, kHundredSteps);
    for (int64_t i = 0; i < 20; ++i) {
      set_gradients(all);
      optimizer->step(fp32(0.01), {}, {}, {.draws = draws(i)});
      if (!evaluates) continue;
      const at::Tensor training = all[0].tensor.clone();
      optimizer->use_averaged_weights(true);
      // The first average is the weight itself.
      if (i > 0) {
        EXPECT_FALSE(at::equal(all[0].tensor, training));
      }
      optimizer->use_averaged_weights(false);
      EXPECT_TRUE(at::equal(all[0].tensor, training));
    }
    return cloned(optimizer->state());
  };
  const NamedTensors state = averaged(false);
  expect_equal(averaged(true), state);
  for (const auto& [name, tensor] : state) {
    if (name.rfind("ema.average.", 0) != 0) continue;
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
  }
}

TEST(Bf16Weights, RejectUnsupportedCombinations) {
  const NamedTensors narrow = parameters(), wide = {{"w", at::zeros({8, 8})}};
  for (const char* optimizer : {"adafactor", "muon", "schedule-free-sgd", "schedule-free-adamw"}) {
    EXPECT_NE(error_of(optimizer, narrow).find("'weight' is bf16, which this optimizer"),
              std::string::npos)
        << optimizer;
    EXPECT_NE(
        error_of(std::string(optimizer) + " rounding=kahan", narrow).find("unknown key 'rounding'"),
        std::string::npos);
  }
  EXPECT_NE(error_of("adamw rounding=kahan", wide).find("optimizer.rounding is kahan, but no"),
            std::string::npos);
  EXPECT_NE(error_of("adamw rounding=up", narrow).find("rounding: unknown value 'up'"),
            std::string::npos);
  EXPECT_EQ(error_of("adamw rounding=auto", wide), "");
  try {
    make_wrapped("sgd", "[lookahead]", narrow, {}, kHundredSteps);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("lookahead is not supported with"), std::string::npos);
  }
}

}  // namespace
}  // namespace gallop::optim
