// Optimizers that keep their states in 8 bits. tests/unit/kernel/update_8_bits_test.cpp holds the
// update against the paper.
#include <cmath>
#include <map>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/optimizer_parameters.h"

namespace gallop::optim {
namespace {

at::Tensor fp32(double value) { return at::scalar_tensor(value, at::TensorOptions(c10::kFloat)); }

std::unique_ptr<Optimizer> build(const std::string& name, const NamedTensors& parameters,
                                 const char* bits = "8", bool amsgrad = false) {
  const OptimizerRegistry registry = built_in_optimizers();
  config::Component component(registry, name);
  config::Node options;
  options.at_or_add("state_bits", {}) = config::Node::make_scalar(bits);
  if (amsgrad) options.at_or_add("amsgrad", {}) = config::Node::make_scalar("true");
  config::Problems problems;
  config::read_fields(
      options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  return registry.build(component, parameters);
}

NamedTensors parameters() {
  return {{"large", at::randn({64, 65})}, {"bias", at::randn({65})}, {"edge", at::randn({4096})}};
}

void set_gradients(NamedTensors& parameters) {
  for (auto& [name, tensor] : parameters) {
    tensor.mutable_grad() = at::randn(tensor.sizes()).mul_(0.1);
  }
}

std::string error_of(const std::string& name, const NamedTensors& parameters, const char* bits,
                     bool amsgrad) {
  try {
    build(name, parameters, bits, amsgrad);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

// Otherwise they would take four times their memory while they are made.
TEST(EightBitStates, AreNotMadeInFp32First) {
  const NamedTensors state = make_state("exp_avg", parameters(), 0, /*for_8_bits=*/true);
  EXPECT_TRUE(state[0].tensor.is_meta());
  EXPECT_TRUE(state[1].tensor.is_cpu());  // Too small for 8 bits.
}

class EightBits : public testing::TestWithParam<const char*> {};

TEST_P(EightBits, LargeParametersHaveCodesAndScales) {
  NamedTensors all = parameters();
  const auto optimizer = build(GetParam(), all);
  const size_t kinds = std::string(GetParam()) == "lion" ? 1 : 2;
  int64_t bytes = 0;
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : optimizer->state()) {
    state.emplace(name, tensor);
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  EXPECT_EQ(state.at("exp_avg.large").scalar_type(), at::kByte);
  EXPECT_EQ(state.at("exp_avg.large").sizes(), all[0].tensor.sizes());
  EXPECT_EQ(state.at("exp_avg.edge").scalar_type(), at::kByte);
  EXPECT_EQ(state.at("exp_avg.bias").scalar_type(), at::kFloat);
  EXPECT_EQ(state.at("scales.large").sizes(), at::IntArrayRef({static_cast<int64_t>(kinds), 17}));
  EXPECT_EQ(state.count("scales.bias"), 0u);
  // One byte per element, 4 per block of 256, and the rest.
  const auto counted = static_cast<int64_t>(kinds) * (64 * 65 + 4096 + 4 * (17 + 16) + 4 * 65);
  EXPECT_EQ(bytes, counted + (kinds == 2 ? 4 * 3 : 0));
}

TEST_P(EightBits, ContinuesBitForBitFromCopiedState) {
  NamedTensors original = parameters();
  const auto first = build(GetParam(), original);
  for (int i = 0; i < 3; ++i) {
    set_gradients(original);
    first->step(fp32(0.01));
  }
  NamedTensors copy;
  for (const auto& [name, tensor] : original) copy.push_back({name, tensor.clone()});
  const auto second = build(GetParam(), copy);
  const NamedTensors from = first->state(), to = second->state();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(from[i].name, to[i].name);
    to[i].tensor.copy_(from[i].tensor);
  }
  for (int i = 0; i < 2; ++i) {
    set_gradients(original);
    for (size_t k = 0; k < copy.size(); ++k) {
      copy[k].tensor.mutable_grad() = original[k].tensor.grad().clone();
    }
    first->step(fp32(0.01));
    second->step(fp32(0.01));
  }
  for (size_t i = 0; i < copy.size(); ++i) {
    EXPECT_TRUE(at::equal(original[i].tensor, copy[i].tensor));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    EXPECT_TRUE(at::equal(from[i].tensor, to[i].tensor)) << from[i].name;
  }
}

TEST_P(EightBits, SkippedStepsChangeNothing) {
  NamedTensors all = parameters();
  const auto optimizer = build(GetParam(), all);
  set_gradients(all);
  optimizer->step(fp32(0.01));
  NamedTensors before;
  for (const auto& list : {all, optimizer->state()}) {
    for (const auto& [name, tensor] : list) before.push_back({name, tensor.clone()});
  }
  all[0].tensor.mutable_grad().fill_(INFINITY);
  optimizer->step(fp32(0.01), fp32(1024), fp32(1));
  NamedTensors after = all;
  for (const auto& item : optimizer->state()) after.push_back(item);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(before[i].tensor, after[i].tensor)) << before[i].name;
  }
}

// A least-squares problem whose columns are of many sizes.
double loss_after(const char* optimizer, const char* bits) {
  at::manual_seed(1);
  at::Tensor a = at::randn({256, 128}), x = at::randn({128, 48});
  a = a * at::arange(1, 129, at::kFloat).pow(-0.5);
  const at::Tensor b = a.mm(x);
  NamedTensors all = {{"w", at::zeros({128, 48})}};
  const at::Tensor& w = all[0].tensor;
  const auto made = build(optimizer, all, bits);
  const double lr = std::string(optimizer) == "lion" ? 1.5e-2 : 2e-2;
  const auto loss = [&] { return (a.mm(w) - b).square().mean().item<double>(); };
  const double first = loss();
  for (int step = 0; step < 400; ++step) {
    w.mutable_grad() = a.t().mm(a.mm(w) - b) / 256;
    made->step(fp32(lr * (1 - step / 400.0)));
  }
  return loss() / first;
}

TEST_P(EightBits, LearnsAsWellAsThirtyTwoBits) {
  const double with_32 = loss_after(GetParam(), "32"), with_8 = loss_after(GetParam(), "8");
  EXPECT_LT(with_32, 0.01);
  EXPECT_LT(with_8, 0.02);
}

TEST_P(EightBits, FollowsTheMemoryOrderOfFilters) {
  const at::Tensor weight = at::randn({16, 32, 3, 3}), gradient = at::randn({16, 32, 3, 3});
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const NamedTensors all = {{"conv", weight.clone().contiguous(format)}};
    const auto optimizer = build(GetParam(), all);
    all[0].tensor.mutable_grad() = gradient.clone();
    const at::Tensor before = all[0].tensor.clone();
    optimizer->step(fp32(0.01));
    EXPECT_FALSE(at::equal(all[0].tensor, before));
    // Resuming in another memory format reports that the state does not fit.
    bool is_there = false;
    for (const auto& item : optimizer->state()) {
      is_there |=
          item.name ==
          (format == at::MemoryFormat::Contiguous ? "scales.conv" : "scales_channels_last.conv");
    }
    EXPECT_TRUE(is_there);
  }
}

TEST_P(EightBits, RequiresFp32Parameters) {
  const NamedTensors twice = {{"w", at::zeros({64, 64}, at::kDouble)}};
  EXPECT_NE(error_of(GetParam(), twice, "8", false).find("state_bits is 8, which needs"),
            std::string::npos);
  EXPECT_EQ(error_of(GetParam(), twice, "32", false), "");
}

INSTANTIATE_TEST_SUITE_P(, EightBits, testing::Values("adam", "adamw", "lion"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(EightBitsOptions, RejectContradictions) {
  EXPECT_NE(error_of("adamw", parameters(), "8", true).find("not supported with state_bits 8"),
            std::string::npos);
  EXPECT_NE(error_of("adam", parameters(), "16", false).find("state_bits: unknown value '16'"),
            std::string::npos);
  EXPECT_NE(error_of("sgd", parameters(), "8", false).find("unknown key 'state_bits'"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::optim
