#include "gallop/kernel/activation.h"

#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/activation.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr Activation kKinds[] = {Activation::kGelu, Activation::kGeluTanh, Activation::kSilu,
                                 Activation::kRelu};
constexpr at::ScalarType kFormats[] = {at::kFloat, at::kBFloat16};

at::Tensor by_library(Activation kind, const at::Tensor& x) {
  switch (kind) {
    case Activation::kGelu: return at::gelu(x);
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kSilu: return at::silu(x);
    case Activation::kRelu: return at::relu(x);
  }
  return {};
}

struct Results {
  at::Tensor y, dx, dbias;
};

// The results of LibTorch's operators in this precision.
Results by_library(Activation kind, at::ScalarType format, const at::Tensor& x,
                   const at::Tensor& bias, const at::Tensor& dy) {
  const auto leaf_x = leaf(x, format), leaf_bias = leaf(bias, format);
  const auto y = by_library(kind, bias.defined() ? leaf_x + leaf_bias : leaf_x);
  y.backward(dy.to(format));
  return {y.detach(), leaf_x.grad(), bias.defined() ? leaf_bias.grad() : at::Tensor()};
}

struct Case {
  at::Tensor x, bias, dy;

  Case(int64_t rows, int64_t columns, at::ScalarType format, bool with_bias, double spread) {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows * 1000 + columns));
    x = at::randn({rows, columns}, generator, at::kFloat).mul_(spread).to(format);
    dy = at::randn({rows, columns}, generator, at::kFloat).to(format);
    if (with_bias) bias = at::randn({columns}, generator, at::kFloat);
  }
};

template <typename Number>
Results by_kernels(const ActivationKernels& kernels, Activation kind, const Case& c) {
  const auto numbers = [](const at::Tensor& t) { return static_cast<Number*>(t.data_ptr()); };
  const float* bias = c.bias.defined() ? c.bias.const_data_ptr<float>() : nullptr;
  const int64_t rows = c.x.size(0), columns = c.x.size(1);
  Results r{at::empty_like(c.x), at::empty_like(c.x), at::empty({columns}, at::kFloat)};
  const ActivationRows<Number> forward{numbers(c.x), bias, numbers(r.y), rows, columns};
  const ActivationGradientRows<Number> backward{
      numbers(c.dy), numbers(c.x), bias, numbers(r.dx), r.dbias.mutable_data_ptr<float>(),
      rows,          columns};
  if constexpr (std::is_same_v<Number, float>) {
    kernels.forward_fp32(kind, forward);
    kernels.backward_fp32(kind, backward);
  } else {
    kernels.forward_bf16(kind, forward);
    kernels.backward_bf16(kind, backward);
  }
  return r;
}

Results by_kernels(Isa isa, Activation kind, const Case& c) {
  const auto kernels = kernels_for<ActivationKernels>(isa);
  return c.x.scalar_type() == at::kFloat ? by_kernels<float>(kernels, kind, c)
                                         : by_kernels<Bf16>(kernels, kind, c);
}

class ActivationOfIsa : public IsaTest {};

TEST_P(ActivationOfIsa, MatchesFp64ForEveryShape) {
  for (const auto kind : kKinds) {
    for (const auto format : kFormats) {
      for (const bool with_bias : {false, true}) {
        for (const int64_t columns : {1, 3, 16, 17, 100}) {
          const Case c(columns == 3 ? 1 : 7, columns, format, with_bias, 2);
          const auto found = by_kernels(GetParam(), kind, c);
          const auto truth = by_library(kind, at::kDouble, c.x, c.bias, c.dy);
          const double bound = 8 * rounding_of(format);
          EXPECT_LE(error_of(found.y, truth.y), bound) << columns;
          EXPECT_LE(error_of(found.dx, truth.dx), bound) << columns;
          EXPECT_LE(error_of(found.dbias, truth.dx.sum(0)), format == at::kFloat ? 1e-5 : 1e-4)
              << columns;
        }
      }
    }
  }
}

TEST_P(ActivationOfIsa, IsAsAccurateAsLibTorch) {
  for (const auto kind : kKinds) {
    for (const auto format : kFormats) {
      for (const double spread : {0.1, 1.0, 5.0}) {
        const Case c(64, 333, format, true, spread);
        const auto found = by_kernels(GetParam(), kind, c);
        const auto truth = by_library(kind, at::kDouble, c.x, c.bias, c.dy);
        const auto library = by_library(kind, format, c.x, c.bias, c.dy);
        const double rest = GetParam() == Isa::kBaseline ? 0x1p-24 : 0x1p-27;  // No fma.
        EXPECT_LE(error_of(found.y, truth.y), error_of(library.y, truth.y) + rest)
            << int(kind) << " " << format << " " << spread;
        EXPECT_LE(error_of(found.dx, truth.dx), error_of(library.dx, truth.dx) + rest)
            << int(kind) << " " << format << " " << spread;
      }
    }
  }
}

TEST_P(ActivationOfIsa, IsCorrectAtTheLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto kind : kKinds) {
    Case c(1, 8, at::kFloat, false, 1);
    c.x = at::tensor({0.0F, -0.0F, 20.0F, 1e4F, 1e15F, -20.0F, -1e4F, -1e15F}).view({1, 8});
    c.dy = at::full_like(c.x, 1);
    const auto found = by_kernels(GetParam(), kind, c);
    const double half = kind == Activation::kRelu ? 0 : 0.5;
    const auto slope =
        at::tensor({half, half, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0}, at::kFloat).view({1, 8});
    EXPECT_LE((found.y - c.x.clamp_min(0)).abs().max().item<double>(), 1e-6) << found.y;
    EXPECT_LE((found.dx - slope).abs().max().item<double>(), 1e-6) << found.dx;
    c.x = at::tensor({kInfinity, std::nanf(""), 1.0F}).view({1, 3});
    c.dy = at::full_like(c.x, 1);
    const auto ends = by_kernels(GetParam(), kind, c).y;
    EXPECT_EQ(ends[0][0].item<float>(), kInfinity);
    EXPECT_TRUE(std::isnan(ends[0][1].item<float>()));
    EXPECT_GT(ends[0][2].item<float>(), 0.7F);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, ActivationOfIsa, every_isa());

TEST(Activation, MatchesItsKernels) {
  for (const auto format : kFormats) {
    const Case c(301, 77, format, true, 2);
    const auto wanted = by_kernels(best_isa(), Activation::kGelu, c);
    const auto cube = [](const at::Tensor& t) { return t.view({7, 43, 77}); };
    EXPECT_TRUE(activation(Activation::kGelu, cube(c.x), c.bias).equal(cube(wanted.y)));
    const auto found =
        activation_backward(Activation::kGelu, cube(c.dy), cube(c.x), c.bias, at::kFloat);
    EXPECT_TRUE(found.x.equal(cube(wanted.dx)));
    EXPECT_LE(error_of(found.bias, wanted.dbias), 1e-6);
    const auto narrow = c.bias.to(format);
    const auto other =
        activation_backward(Activation::kGelu, cube(c.dy), cube(c.x), narrow, format);
    EXPECT_EQ(other.bias.scalar_type(), format);
    const auto without =
        activation_backward(Activation::kGelu, cube(c.dy), cube(c.x), {}, std::nullopt);
    EXPECT_FALSE(without.bias.defined());
    EXPECT_LE(
        error_of(without.x,
                 by_library(Activation::kGelu, at::kDouble, c.x, {}, c.dy).dx.view_as(without.x)),
        4 * rounding_of(format));
  }
}

TEST(Activation, SumsAreAsAccurateAsLibTorchs) {
  constexpr double kNoise = 1.05;  // Factor between errors of 300 numbers.
  for (const auto format : kFormats) {
    for (const int64_t rows : {100, 2048, 5000}) {
      const Case c(rows, 300, format, true, 1);
      const auto found = activation_backward(Activation::kGeluTanh, c.dy, c.x, c.bias, at::kFloat);
      const auto truth = by_library(Activation::kGeluTanh, at::kDouble, c.x, c.bias, c.dy);
      const auto library = by_library(Activation::kGeluTanh, format, c.x, c.bias, c.dy);
      EXPECT_LE(error_of(found.bias, truth.dbias), kNoise * error_of(library.dbias, truth.dbias))
          << rows;
    }
  }
}

TEST(Activation, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Case c(3001, 100, at::kFloat, true, 1);
  std::vector<ActivationGradients> results;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    results.push_back(activation_backward(Activation::kSilu, c.dy, c.x, c.bias, at::kFloat));
  }
  at::set_num_threads(threads);
  for (const auto& result : results) {
    EXPECT_TRUE(result.x.equal(results[0].x));
    EXPECT_TRUE(result.bias.equal(results[0].bias));
  }
}

TEST(Activation, RejectsUnsupportedInputs) {
  const auto x = at::randn({4, 6});
  EXPECT_TRUE(takes_activation(x, {}));
  EXPECT_FALSE(takes_activation(x.to(at::kDouble), {}));
  EXPECT_FALSE(takes_activation(x.t(), {}));
  EXPECT_FALSE(takes_activation(x.narrow(0, 0, 0), {}));
  EXPECT_FALSE(takes_activation(x.to(at::kMeta), {}));
  EXPECT_FALSE(takes_activation(x, at::randn({5})));
  EXPECT_FALSE(takes_activation(x, at::randn({6}).to(at::kBFloat16)));
  EXPECT_THROW(activation(Activation::kRelu, x.t(), {}), InternalError);
  EXPECT_THROW(activation_backward(Activation::kRelu, x.t(), x, {}, std::nullopt), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
