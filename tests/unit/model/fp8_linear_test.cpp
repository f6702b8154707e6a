#include "gallop/model/functional/fp8_linear.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gallop/base/error.h"
#include "gallop/model/airbench.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "gallop/precision/precision.h"

namespace gallop::model::functional {
namespace {

using precision::Precision;

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}

// The fp8 values of a tensor, in fp64: each element is divided by the scale, in the precision of
// the formula, and cast individually.
at::Tensor in_fp8(const at::Tensor& tensor, bool is_gradient) {
  const at::Tensor flat = tensor.detach().to(at::kFloat).contiguous();
  const float most = is_gradient ? 57344.0F : 448.0F;
  const float* numbers = flat.const_data_ptr<float>();
  float largest = 0;
  for (int64_t i = 0; i < flat.numel(); ++i) largest = std::max(largest, std::abs(numbers[i]));
  const float scale = std::max(largest, 1e-12F) / most;
  at::Tensor result = at::zeros(flat.sizes(), at::kDouble);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const float quotient = numbers[i] / scale;
    const float cast = is_gradient ? static_cast<float>(c10::Float8_e5m2(quotient))
                                   : static_cast<float>(c10::Float8_e4m3fn(quotient));
    result.mutable_data_ptr<double>()[i] = static_cast<double>(cast) * scale;
  }
  return result;
}

double size_of(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

// The norm of the difference relative to the norm of `wanted`.
double error_of(const at::Tensor& got, const at::Tensor& wanted) {
  return size_of(got.detach().to(at::kDouble) - wanted) / size_of(wanted);
}

struct Sizes {
  std::string name;
  std::vector<int64_t> x;
  int64_t outputs;
  bool bias = true;
  at::ScalarType format = at::kFloat;  // Format of x.
  double factor = 1;
};

void PrintTo(const Sizes& sizes, std::ostream* out) { *out << sizes.name; }

class Fp8Linear : public testing::TestWithParam<Sizes> {
 protected:
  // Contains an element far larger than the others, and requires no gradients.
  at::Tensor x() const {
    const Sizes& sizes = GetParam();
    const at::Tensor x = normal(sizes.x, 1) * sizes.factor;
    x.view(-1).select(0, 3).fill_(20 * sizes.factor);
    return x.to(sizes.format);
  }
  at::Tensor weight() const { return normal({GetParam().outputs, GetParam().x.back()}, 2) * 0.05; }
  at::Tensor bias() const {
    return GetParam().bias ? normal({GetParam().outputs}, 3) : at::Tensor();
  }
  at::Tensor dy() const {
    std::vector<int64_t> sizes = GetParam().x;
    sizes.back() = GetParam().outputs;
    return (normal(sizes, 4) * 1e-4).to(at::kBFloat16);
  }
};

at::Tensor rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

TEST_P(Fp8Linear, ComputesThreeProductsOfNumbersInFp8) {
  const at::Tensor x = this->x().requires_grad_(), weight = this->weight().requires_grad_(),
                   bias = this->bias(), dy = this->dy();
  if (bias.defined()) bias.requires_grad_();
  const at::Tensor y = fp8_linear(x, weight, bias);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_EQ(y.sizes(), dy.sizes());
  const at::Tensor x8 = in_fp8(rows(x), false), weight8 = in_fp8(weight, false),
                   dy8 = in_fp8(rows(dy), true);
  at::Tensor wanted = x8.mm(weight8.t());
  if (bias.defined()) wanted = wanted + bias.detach().to(at::kBFloat16).to(at::kDouble);
  EXPECT_LT(error_of(rows(y), wanted), 3e-3) << "bf16 rounds the result";

  y.backward(dy);
  EXPECT_EQ(x.grad().scalar_type(), x.scalar_type());
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  const double rounding = x.scalar_type() == at::kFloat ? 1e-6 : 3e-3;
  EXPECT_LT(error_of(rows(x.grad()), dy8.mm(weight8)), rounding);
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_LT(error_of(weight.grad(), dy8.t().mm(x8)), 1e-6);
  if (bias.defined()) {
    EXPECT_LT(error_of(bias.grad(), rows(dy).to(at::kDouble).sum(0)), 1e-6);
  }
}

// For random inputs, 3 fraction bits are off by 2.6 % of the value on average, 2 bits by 5.1 %, and
// the errors of a GEMM's two operands add in squares.
TEST_P(Fp8Linear, IsAsNearToTheExactProductsAsItsFormats) {
  const at::Tensor x = this->x().requires_grad_(), weight = this->weight().requires_grad_(),
                   dy = this->dy();
  fp8_linear(x, weight, {}).backward(dy);
  const at::Tensor y = fp8_linear(x, weight, {});
  const at::Tensor x_ = rows(x).detach().to(at::kDouble), weight_ = weight.detach().to(at::kDouble),
                   dy_ = rows(dy).to(at::kDouble);
  EXPECT_NEAR(error_of(rows(y), x_.mm(weight_.t())), 0.037, 0.015);
  EXPECT_NEAR(error_of(rows(x.grad()), dy_.mm(weight_)), 0.058, 0.02);
  EXPECT_NEAR(error_of(weight.grad(), dy_.t().mm(x_)), 0.058, 0.02);
}

INSTANTIATE_TEST_SUITE_P(, Fp8Linear,
                         testing::Values(Sizes{"Square", {16, 16}, 16},
                                         Sizes{"Wide", {64, 784}, 128},
                                         Sizes{"FewRows", {5, 32}, 48},
                                         Sizes{"OneRow", {1, 64}, 32},
                                         Sizes{"RaggedRows", {33, 48}, 16, /*bias=*/false},
                                         Sizes{"Tokens", {3, 11, 32}, 96},
                                         Sizes{"Bf16", {32, 64}, 64, true, at::kBFloat16},
                                         Sizes{"Tiny", {24, 32}, 32, false, at::kFloat, 1e-9},
                                         Sizes{"Huge", {24, 32}, 32, false, at::kFloat, 1e30}),
                         [](const auto& tested) { return tested.param.name; });

TEST(Fp8LinearOf, ZerosIsZero) {
  const at::Tensor x = at::zeros({4, 16}).requires_grad_(),
                   weight = normal({16, 16}, 1).requires_grad_();
  const at::Tensor y = fp8_linear(x, weight, {});
  EXPECT_EQ(size_of(y), 0);
  y.backward(at::zeros({4, 16}, at::kBFloat16));
  EXPECT_EQ(size_of(x.grad()), 0);
  EXPECT_EQ(size_of(weight.grad()), 0);
}

// Otherwise an overflow could not be detected, because fp8 saturates.
TEST(Fp8LinearOf, WhatIsNotFiniteIsNotFinite) {
  constexpr double kBad[] = {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  for (const double bad : kBad) {
    const at::Tensor good = normal({32, 16}, 1), weight = normal({16, 16}, 2).requires_grad_();
    at::Tensor x = good.clone();
    x.view(-1).select(0, 100).fill_(bad);
    EXPECT_FALSE(fp8_linear(x, weight, {}).isfinite().any().item<bool>()) << bad;
    const at::Tensor start = good.clone().requires_grad_();
    at::Tensor dy = normal({32, 16}, 3).to(at::kBFloat16);
    dy.view(-1).select(0, 7).fill_(bad);
    fp8_linear(start, weight, {}).backward(dy);
    EXPECT_FALSE(start.grad().isfinite().any().item<bool>()) << bad;
    EXPECT_FALSE(weight.grad().isfinite().any().item<bool>()) << bad;
  }
}

TEST(Fp8LinearOf, TheSameIsTheSameInAutocast) {
  const at::Tensor x = normal({32, 64}, 1), weight = normal({16, 64}, 2), bias = normal({16}, 3);
  const at::Tensor wanted = fp8_linear(x, weight, bias);
  const precision::AutocastGuard autocast(Precision::kFp8, at::kCPU);
  EXPECT_TRUE(at::equal(fp8_linear(x, weight, bias), wanted));
}

TEST(Fp8LinearOf, WhatIsFrozenHasNoGradient) {
  const at::Tensor x = normal({16, 16}, 1), weight = normal({16, 16}, 2), bias = normal({16}, 3);
  x.set_requires_grad(true);
  fp8_linear(x, weight, bias).backward(at::ones_like(x, at::kBFloat16));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_FALSE(fp8_linear(x.detach(), weight, bias).requires_grad());
}

TEST(Fp8LinearOf, RefusesWhatItDoesNotTake) {
  const at::Tensor x = normal({16, 16}, 1);
  EXPECT_THROW(fp8_linear(x, normal({8, 16}, 2), {}), InternalError);
  EXPECT_THROW(fp8_linear(x, normal({16, 24}, 2), {}), InternalError);
  EXPECT_THROW(fp8_linear(x, normal({16, 32}, 2), {}), InternalError);
  EXPECT_THROW(fp8_linear(x.narrow(0, 0, 0), x, {}), InternalError);
  const at::Tensor weight = normal({16, 16}, 2).requires_grad_();
  const at::Tensor y = fp8_linear(x, weight, {});
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {weight}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               UsageError);
}

const Task kImages{.channels = 1, .height = 8, .width = 8, .classes = 16};
const Task kText{.kind = Task::Kind::kText, .classes = 32, .context = 16};

at::Tensor logits_of(Model& model, const at::Tensor& input, Precision precision) {
  const precision::AutocastGuard autocast(precision, at::kCPU);
  return model.forward(input).detach();
}

TEST(Fp8Layers, AreThoseOfMultiplesOf16ButTheLast) {
  EXPECT_EQ(make_mlp({.hidden = {32, 16}}, kImages, 1)->fp8_layers(), 2);
  EXPECT_EQ(make_mlp({.hidden = {32, 12, 16}}, kImages, 1)->fp8_layers(), 1);
  EXPECT_EQ(make_mlp({.hidden = {}}, kImages, 1)->fp8_layers(), 0);
  // Per layer: queries, keys and values; output projection; two feed-forward layers.
  EXPECT_EQ(make_gpt({.layers = 3, .width = 32, .heads = 2}, kText, 1)->fp8_layers(), 12);
  EXPECT_EQ(make_gpt({.layers = 3, .width = 32, .heads = 2, .tied = false}, kText, 1)->fp8_layers(),
            12);
  EXPECT_EQ(make_vit({.patch = 4, .width = 32, .depth = 2, .heads = 2}, kImages, 1)->fp8_layers(),
            8);
  EXPECT_EQ(make_vit({.patch = 4, .width = 12, .depth = 2, .heads = 2}, kImages, 1)->fp8_layers(),
            0);
  EXPECT_EQ(make_resnet({.depth = 8}, kImages, 1)->fp8_layers(), 0);
  EXPECT_EQ(make_airbench({.widths = {16, 16}}, kImages, 1)->fp8_layers(), 0);
}

TEST(Fp8Layers, AloneAreInFp8) {
  const at::Tensor images = normal({4, 1, 8, 8}, 1);
  // Without fp8 layers the model equals the bf16 model.
  for (const auto& model :
       {make_mlp({.hidden = {}}, kImages, 1), make_mlp({.hidden = {24, 12}}, kImages, 1)}) {
    EXPECT_TRUE(at::equal(logits_of(*model, images, Precision::kFp8),
                          logits_of(*model, images, Precision::kBf16)));
  }
  const auto model = make_mlp({.hidden = {32}}, kImages, 1);
  const at::Tensor in_fp8 = logits_of(*model, images, Precision::kFp8);
  EXPECT_FALSE(at::equal(in_fp8, logits_of(*model, images, Precision::kBf16)));
  // The same by hand: the first layer in fp8, the second not.
  const NamedTensors p = model->parameters();
  const precision::AutocastGuard autocast(Precision::kBf16, at::kCPU);
  const at::Tensor hidden = fp8_linear(images.flatten(1), p[0].tensor, p[1].tensor).relu();
  EXPECT_TRUE(at::equal(in_fp8, linear(hidden, p[2].tensor, p[3].tensor)));
}

}  // namespace
}  // namespace gallop::model::functional
