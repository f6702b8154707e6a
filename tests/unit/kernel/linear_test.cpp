#include "gallop/kernel/linear.h"

#include <cmath>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

struct Case {
  int64_t rows, inputs, outputs;
  at::ScalarType format;  // Format of x.
  at::ScalarType output;
  bool relu = false;
  bool bias = true;
  Isa isa = best_isa();
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::to_string(c.rows) + "x" + std::to_string(c.inputs) + "x" + std::to_string(c.outputs) +
         (c.format == at::kFloat ? "_fp32" : "_bf16") +
         (c.output == at::kFloat ? "_fp32" : "_bf16") + (c.relu ? "_relu" : "") +
         (c.bias ? "" : "_without_bias") + "_isa" + std::to_string(static_cast<int>(c.isa));
}

// y and all gradients as their formulas say, with numbers and results in one format.
struct Formula {
  at::Tensor y, dx, dweight, dbias;

  Formula(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
          const at::Tensor& dy, const at::Tensor& positive) {
    y = bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
    at::Tensor dz = dy;
    if (positive.defined()) {
      y = y.relu();
      dz = dy * positive.to(dy.scalar_type());
    }
    dx = at::mm(dz, weight);
    dweight = at::mm(dz.t(), x);
    dbias = dz.sum(0);
  }
};

class LinearOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    if (!has(c.isa)) GTEST_SKIP() << "this machine does not have these instructions";
    at::manual_seed(3);
    x = at::randn({c.rows, c.inputs}).to(c.format);
    weight = at::randn({c.outputs, c.inputs}) / std::sqrt(static_cast<double>(c.inputs));
    if (c.bias) bias = at::randn({c.outputs});
    dy = at::randn({c.rows, c.outputs}).to(c.output);
  }
  at::Tensor forward() const {
    return linear_by(GetParam().isa, x, weight, bias, GetParam().relu, GetParam().output);
  }
  LinearGradients backward(const at::Tensor& y) const {
    return linear_backward_by(GetParam().isa, dy, GetParam().relu ? y : at::Tensor(), x, weight,
                              {.bias = GetParam().bias});
  }
  // The truth, or what LibTorch makes of the same steps in the format of y.
  Formula formula(at::ScalarType format, const at::Tensor& y) const {
    const auto in = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.to(format) : tensor;
    };
    return {in(x), in(weight), in(bias), in(dy), GetParam().relu ? y > 0 : at::Tensor()};
  }
  at::Tensor x, weight, bias, dy;
};

TEST_P(LinearOf, IsAsAccurateAsLibTorch) {
  const at::Tensor y = forward();
  const LinearGradients gradients = backward(y);
  const Formula truth = formula(at::kDouble, y), stock = formula(GetParam().output, y);
  const auto expect_no_worse = [](const at::Tensor& found, const at::Tensor& library,
                                  const at::Tensor& exact) {
    ASSERT_TRUE(found.defined());
    // With few elements the error is random.
    const double least = 2.5 * rounding_of(library.scalar_type());
    EXPECT_LE(error_of(found, exact), std::max(least, 1.1 * error_of(library, exact)));
  };
  EXPECT_EQ(y.scalar_type(), GetParam().output);
  expect_no_worse(y, stock.y, truth.y);
  EXPECT_EQ(gradients.x.scalar_type(), GetParam().format);
  expect_no_worse(gradients.x, stock.dx, truth.dx);
  EXPECT_EQ(gradients.weight.scalar_type(), at::kFloat);
  expect_no_worse(gradients.weight, stock.dweight, truth.dweight);
  EXPECT_EQ(gradients.bias.defined(), GetParam().bias);
  if (GetParam().bias) expect_no_worse(gradients.bias, stock.dbias, truth.dbias);
}

TEST_P(LinearOf, Bf16WeightsMatchTheSameFp32Weights) {
  if (GetParam().output == at::kFloat) GTEST_SKIP() << "products in fp32 take weights in fp32";
  const at::Tensor narrow = weight.to(at::kBFloat16);
  weight = narrow.to(at::kFloat);
  const at::Tensor wanted_y = forward();
  const LinearGradients wanted = backward(wanted_y);
  weight = narrow;
  const at::Tensor y = forward();
  const LinearGradients found = backward(y);
  EXPECT_TRUE(at::equal(y, wanted_y));
  EXPECT_TRUE(at::equal(found.x, wanted.x));
  EXPECT_TRUE(at::equal(found.weight, wanted.weight.to(at::kBFloat16)));
  if (GetParam().bias) {
    EXPECT_TRUE(at::equal(found.bias, wanted.bias));
  }
}

TEST_P(LinearOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor y = forward();
  const LinearGradients first = backward(y);
  for (const int count : {1, 3, 8}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(forward(), y));
    const LinearGradients again = backward(y);
    EXPECT_TRUE(at::equal(again.x, first.x));
    EXPECT_TRUE(at::equal(again.weight, first.weight));
    if (GetParam().bias) {
      EXPECT_TRUE(at::equal(again.bias, first.bias));
    }
  }
  at::set_num_threads(threads);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr auto kF = at::kFloat, kB = at::kBFloat16;
  for (const auto& [x, y] : {std::pair{kF, kF}, {kB, kB}, {kF, kB}}) {
    all.push_back({64, 256, 256, x, y, true});
    all.push_back({64, 784, 256, x, y, true});
    all.push_back({64, 128, 10, x, y});
    all.push_back({1, 1, 1, x, y});
    all.push_back({7, 3, 5, x, y, true});
    all.push_back({33, 65, 97, x, y, false, false});
    all.push_back({129, 31, 33, x, y, true});
    all.push_back({300, 48, 40, x, y, true, false});
    all.push_back({16, 515, 18, x, y});
    for (const Isa isa : kLesserIsas) {
      all.push_back({37, 70, 50, x, y, true, true, isa});
      all.push_back({64, 96, 64, x, y, false, true, isa});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearOf, testing::ValuesIn(cases()), name_of);

TEST(Linear, ComputesOnlyRequestedGradients) {
  const auto x = at::randn({6, 4}), weight = at::randn({5, 4}), dy = at::randn({6, 5});
  const auto none = linear_backward(dy, {}, x, weight, {false, false, false});
  EXPECT_FALSE(none.x.defined() || none.weight.defined() || none.bias.defined());
  const auto one = linear_backward(dy, {}, x, weight, {.x = false, .weight = false});
  EXPECT_FALSE(one.x.defined() || one.weight.defined());
  EXPECT_LE(error_of(one.bias, dy.to(at::kDouble).sum(0)), 1e-6);
}

TEST(Linear, SupportsUnalignedTensors) {
  const auto off = [](at::IntArrayRef sizes) {
    return at::randn({sizes[0] * sizes[1] + 1}).narrow(0, 1, sizes[0] * sizes[1]).view(sizes);
  };
  const auto x = off({35, 33}), weight = off({34, 33}), dy = off({35, 34});
  const auto bias = at::randn({35}).narrow(0, 1, 34);
  const auto y = linear(x, weight, bias, false, at::kFloat);
  EXPECT_LE(
      error_of(y, at::addmm(bias.to(at::kDouble), x.to(at::kDouble), weight.to(at::kDouble).t())),
      1e-6);
  const auto gradients = linear_backward(dy, {}, x, weight, {});
  EXPECT_LE(error_of(gradients.x, at::mm(dy.to(at::kDouble), weight.to(at::kDouble))), 1e-6);
}

TEST(Linear, KeepsLeadingDimensions) {
  const auto x = at::randn({2, 3, 8}), weight = at::randn({5, 8});
  const auto y = linear(x, weight, {}, true, at::kBFloat16);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 3, 5}));
  EXPECT_EQ(linear_backward(y, y, x, weight, {}).x.sizes(), x.sizes());
}

TEST(Linear, IsUsedOnlyWhereItIsFastest) {
  if (best_isa() < Isa::kAvx512Bf16) GTEST_SKIP() << "this machine has no products of bf16";
  const auto x = at::randn({64, 256}), weight = at::randn({256, 256}), bias = at::randn({256});
  EXPECT_TRUE(takes_linear(x, weight, bias, at::kFloat));
  EXPECT_TRUE(takes_linear(x.to(at::kBFloat16), weight, {}, at::kBFloat16));
  EXPECT_FALSE(takes_linear(x.to(at::kBFloat16), weight, {}, at::kFloat));
  EXPECT_FALSE(takes_linear(x, weight.t(), bias, at::kFloat));
  EXPECT_FALSE(takes_linear(x.narrow(1, 0, 128), at::randn({8, 128}), {}, at::kFloat));
  EXPECT_TRUE(takes_linear(x, weight.to(at::kBFloat16), bias, at::kBFloat16));
  EXPECT_FALSE(takes_linear(x, weight.to(at::kBFloat16), bias, at::kFloat));
  EXPECT_FALSE(takes_linear(x, weight, at::randn({255}), at::kFloat));
  EXPECT_FALSE(takes_linear(x.to(at::kDouble), weight, bias, at::kFloat));
  EXPECT_FALSE(takes_linear(at::randn({0, 256}), weight, bias, at::kFloat));
  EXPECT_FALSE(takes_linear(at::randn({2048, 256}), weight, bias, at::kFloat));
}

TEST(Linear, RejectsInvalidShapes) {
  const auto x = at::randn({6, 4}), weight = at::randn({5, 4});
  EXPECT_THROW(linear(x, at::randn({5, 3}), {}, false, at::kFloat), InternalError);
  EXPECT_THROW(linear_backward(at::randn({6, 4}), {}, x, weight, {}), InternalError);
  EXPECT_THROW(linear_backward(at::randn({7, 5}), {}, x, weight, {}), InternalError);
  EXPECT_THROW(linear_backward(at::randn({6, 5}), at::randn({6, 4}), x, weight, {}), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
