#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mse_loss_backward.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <gtest/gtest.h>

#include "unit/compile/fused_function.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

double ulp_of(at::ScalarType type) {
  return type == at::kBFloat16 ? 0x1p-8 : type == at::kFloat ? 0x1p-23 : 0x1p-52;
}

double error_of(const at::Tensor& got, const at::Tensor& wanted) {
  return (got.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
}

// In fp64, but for fp64 itself, which LibTorch's own result stands in for.
Tensors reference(const Function& function, const Tensors& inputs) {
  Tensors wide;
  for (const at::Tensor& input : inputs) {
    wide.push_back(input.is_floating_point() ? input.to(at::kDouble) : input);
  }
  return function(wide);
}

// Results in LibTorch's formats and layouts, about as near to fp64 as its own.
void expect_values(const FusedFunction& fused, const Function& function, const Tensors& inputs) {
  const Tensors got = fused.run(inputs), plain = function(inputs);
  const Tensors wanted = reference(function, inputs);
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(got[i].scalar_type(), plain[i].scalar_type());
    ASSERT_EQ(got[i].sizes(), plain[i].sizes());
    EXPECT_EQ(got[i].strides(), plain[i].strides());
    const double size = wanted[i].to(at::kDouble).abs().max().item<double>();
    EXPECT_LE(error_of(got[i], wanted[i]),
              2 * error_of(plain[i], wanted[i]) + 2 * ulp_of(plain[i].scalar_type()) * size)
        << "result " << i;
  }
}

// The whole function is a single loop.
void expect_one_loop(const Function& function, const Tensors& inputs,
                     const std::vector<std::string>& off = {}) {
  const FusedFunction fused(function, inputs, "", off);
  EXPECT_EQ(fused.graph.nodes.size(), 1U);
  EXPECT_EQ(fused.loops(), 1);
  for (const Node& node : fused.graph.nodes) EXPECT_TRUE(is_loop(node)) << name_of(node.op);
  expect_values(fused, function, inputs);
}

class FuseReductions : public testing::TestWithParam<at::ScalarType> {
 protected:
  static at::Tensor numbers(at::IntArrayRef sizes) { return at::randn(sizes).to(GetParam()); }
};

TEST_P(FuseReductions, RmsNormByHand) {
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        return {x[0] * at::rsqrt(x[0].pow(2).mean(-1, /*keepdim=*/true) + 1e-5) * x[1]};
      },
      {numbers({4, 33, 96}), numbers({96})});
}

TEST_P(FuseReductions, SoftmaxByHand) {
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor e = at::exp(x[0] - x[0].amax(-1, /*keepdim=*/true));
        return {e / e.sum(-1, /*keepdim=*/true)};
      },
      {numbers({40, 70})});
}

TEST_P(FuseReductions, SumsWithoutKeepdimAndUnsqueeze) {
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor mean = x[0].mean(1);
        const at::Tensor off = x[0] - mean.unsqueeze(1);
        return {off, mean, (off * off).sum(1)};
      },
      {numbers({35, 64})});
}

TEST_P(FuseReductions, SoftmaxWithAScaleAndAMask) {
  const auto function = [](const Tensors& x) -> Tensors {
    return {at::softmax((x[0] * 0.125).masked_fill(x[1], -1e4), -1),
            at::log_softmax(x[0] * 0.125 + 1, -1)};
  };
  const Tensors inputs = {numbers({3, 16, 40}), at::rand({16, 40}).gt(0.7)};
  const FusedFunction fused(function, inputs);
  EXPECT_EQ(fused.loops(), 1);
  EXPECT_EQ(fused.graph.nodes.size(), 1U);
  expect_values(fused, function, inputs);
}

TEST_P(FuseReductions, GradientsOfSoftmax) {
  const at::ScalarType type = GetParam();
  expect_one_loop(
      [type](const Tensors& x) -> Tensors {
        const at::ScalarType as = x[0].scalar_type() == at::kDouble ? at::kDouble : type;
        return {at::_softmax_backward_data(x[0], x[1], 1, as) * 0.125};
      },
      {numbers({40, 33}), at::softmax(numbers({40, 33}), 1)});
  expect_one_loop(
      [type](const Tensors& x) -> Tensors {
        const at::ScalarType as = x[0].scalar_type() == at::kDouble ? at::kDouble : type;
        return {at::_log_softmax_backward_data(x[0] * 2, x[1], 1, as)};
      },
      {numbers({40, 33}), at::log_softmax(numbers({40, 33}), 1)});
}

TEST_P(FuseReductions, MeanSquaredError) {
  const Tensors inputs = {numbers({40, 70}), numbers({40, 70})};
  expect_one_loop([](const Tensors& x) -> Tensors { return {(x[0] - x[1]).pow(2).mean()}; },
                  inputs);
  expect_one_loop([](const Tensors& x) -> Tensors { return {at::mse_loss(x[0] * 2, x[1])}; },
                  inputs);
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        return {at::mse_loss_backward(x[2], x[0] * 2, x[1], 1) * 2};
      },
      {inputs[0], inputs[1], numbers({})});
  // The mean is over fewer numbers than the gradient has.
  const Function broadcast = [](const Tensors& x) -> Tensors {
    return {at::mse_loss_backward(x[2], x[0], x[1], 1) * 2};
  };
  const Tensors smaller = {numbers({1, 70}), inputs[1], numbers({})};
  const FusedFunction fused(broadcast, smaller);
  EXPECT_EQ(fused.loops(), 0);
  expect_values(fused, broadcast, smaller);
}

TEST_P(FuseReductions, BiasGradients) {
  // Behind a gradient that others read as well.
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor dx = at::tanh_backward(x[0], x[1]);
        return {dx, dx.sum(0)};
      },
      {numbers({70, 40}), numbers({70, 40}).tanh()});
  // As linear layers over sequences have them.
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor dx = at::gelu_backward(x[0], x[1]).view({-1, 40});
        return {dx, dx.sum(0, /*keepdim=*/true).view({-1})};
      },
      {numbers({2, 35, 40}), numbers({2, 35, 40})}, {"activations"});
}

TEST_P(FuseReductions, SumsOfChannels) {
  const auto function = [](const Tensors& x) -> Tensors {
    const at::Tensor dx = at::threshold_backward(x[0], x[1], 0);
    return {dx, dx.sum({0, 2, 3})};
  };
  const Tensors inputs = {numbers({4, 24, 5, 20}), numbers({4, 24, 5, 20})};
  expect_one_loop(function, inputs, {"activations"});
  Tensors channels_last;
  for (const at::Tensor& x : inputs) {
    channels_last.push_back(x.contiguous(at::MemoryFormat::ChannelsLast));
  }
  expect_one_loop(function, channels_last, {"activations"});
}

TEST_P(FuseReductions, MaximaAndMinima) {
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor y = x[0] * 3;
        return {y.amax(0), y.amin(0), y.amax(), (y * y).sum() * 2};
      },
      {numbers({40, 70})});
}

INSTANTIATE_TEST_SUITE_P(, FuseReductions, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

TEST(FuseReductionsOf, DtypeArgumentsAndIntegers) {
  const Tensors inputs = {at::randn({40, 70}).to(at::kBFloat16)};
  expect_one_loop(
      [](const Tensors& x) -> Tensors {
        const at::Tensor y = x[0] + 1;
        return {at::sum(y, 0, false, at::kDouble), at::sum(y, 0, false), at::sum(y, at::kDouble)};
      },
      inputs);
  const Function count = [](const Tensors& x) -> Tensors {
    const at::Tensor hit = x[0].gt(0.5);
    return {hit.sum(), hit.sum(0)};
  };
  const FusedFunction fused(count, inputs);
  EXPECT_EQ(fused.graph.nodes.size(), 1U);
  EXPECT_TRUE(at::equal(fused.run(inputs)[0], count(inputs)[0]));
  EXPECT_TRUE(at::equal(fused.run(inputs)[1], count(inputs)[1]));
}

TEST(FuseReductionsOf, UnsupportedReductionsAreNotFused) {
  // Means of all elements and of columns are not known while elements are computed.
  const Tensors inputs = {at::randn({40, 70}), at::randn({40, 40})};
  const Function centered = [](const Tensors& x) -> Tensors {
    const at::Tensor y = x[0] * 2;
    return {y - y.mean(), y - y.mean(0)};
  };
  const FusedFunction means(centered, inputs);
  EXPECT_EQ(means.loops(), 1);
  EXPECT_EQ(means.graph.nodes.size(), 4U);
  expect_values(means, centered, inputs);
  // Sums of rows that are read as columns.
  const Function turned = [](const Tensors& x) -> Tensors {
    const at::Tensor y = x[1] * 2;
    return {y + y.sum(1).unsqueeze(0), y + y.sum(1).unsqueeze(1)};
  };
  const FusedFunction square(turned, inputs);
  expect_values(square, turned, inputs);
}

// Cases in which LibTorch is at least as fast: see is_worth_it() in passes/fused_loop.cpp.
TEST(FuseReductionsOf, SlowReductionsAreNotFused) {
  const auto loops = [](const Function& function, const at::Tensor& x) {
    const FusedFunction fused(function, {x});
    expect_values(fused, function, {x});
    return fused.loops();
  };
  const Function norm = [](const Tensors& x) -> Tensors {
    return {x[0] / x[0].sum(-1, /*keepdim=*/true)};
  };
  EXPECT_EQ(loops(norm, at::rand({64, 64})), 1);
  EXPECT_EQ(loops(norm, at::rand({64, 5})), 0);       // Short rows.
  EXPECT_EQ(loops(norm, at::rand({2, 50'000})), 0);   // Few rows.
  EXPECT_EQ(loops(norm, at::rand({32, 32}).t()), 0);  // Non-contiguous rows.
  const Function by_erf = [](const Tensors& x) -> Tensors { return {(x[0].erf() * 2).sum(0)}; };
  EXPECT_EQ(loops(by_erf, at::rand({256, 128})), 1);
  EXPECT_EQ(loops(by_erf, at::rand({512, 256})), 2);  // Many erf: the sum is not fused.
  const Function spatial = [](const Tensors& x) -> Tensors { return {(x[0] * 2).sum({2, 3})}; };
  const at::Tensor images = at::rand({4, 16, 8, 8});
  EXPECT_EQ(loops(spatial, images), 1);
  // Rows would lie in pieces.
  EXPECT_EQ(loops(spatial, images.contiguous(at::MemoryFormat::ChannelsLast)), 0);
}

TEST(FuseReductionsOf, SingleReductions) {
  const auto loops = [](const Function& function, const at::Tensor& x) {
    const FusedFunction fused(function, {x});
    expect_values(fused, function, {x});
    return fused.loops();
  };
  const Function columns = [](const Tensors& x) -> Tensors { return {x[0].sum(0)}; };
  const Function rows = [](const Tensors& x) -> Tensors { return {x[0].sum(1)}; };
  const Function softmax = [](const Tensors& x) -> Tensors { return {at::softmax(x[0], 1)}; };
  EXPECT_EQ(loops(columns, at::rand({256, 64})), 1);
  EXPECT_EQ(loops(columns, at::rand({16, 64})), 0);
  EXPECT_EQ(loops(rows, at::rand({256, 64})), 0);
  EXPECT_EQ(loops(rows, at::rand({256, 64}).to(at::kBFloat16)), 1);
  EXPECT_EQ(loops(softmax, at::rand({128, 1024})), 1);
  EXPECT_EQ(loops(softmax, at::rand({1024, 64})), 0);
}

// Sums of many numbers of one sign, over rows, columns and all.
TEST(FuseReductionsOf, SumsErrNoMoreThanLibTorchs) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{16, 60'000}, {50'000, 16}, {1000, 1000}}) {
    const Function function = [](const Tensors& x) -> Tensors {
      const at::Tensor y = x[0] * 0.7;
      return {y.sum(1), y.sum(0), y.sum()};
    };
    const Tensors inputs = {at::rand({rows, columns})};
    const FusedFunction fused(function, inputs);
    EXPECT_EQ(fused.graph.nodes.size(), 1U);
    const at::Tensor exact = (inputs[0] * 0.7).to(at::kDouble);
    const Tensors wanted = {exact.sum(1), exact.sum(0), exact.sum()};
    const Tensors got = fused.run(inputs), plain = function(inputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double size = wanted[i].abs().max().item<double>();
      EXPECT_LE(error_of(got[i], wanted[i]), error_of(plain[i], wanted[i]) + 0x1p-24 * size)
          << rows << " x " << columns << ", result " << i;
    }
    const int before = at::get_num_threads();
    at::set_num_threads(1);
    const Tensors alone = fused.run(inputs);
    at::set_num_threads(before);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], alone[i]));
  }
}

}  // namespace
}  // namespace gallop::compile
