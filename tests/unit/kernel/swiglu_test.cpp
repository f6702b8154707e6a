#include "gallop/kernel/swiglu.h"

#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/swiglu.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr at::ScalarType kFormats[] = {at::kFloat, at::kBFloat16};

struct Case {
  at::Tensor x, dy;

  Case(int64_t rows, int64_t columns, at::ScalarType format, double spread) {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows * 1000 + columns));
    x = at::randn({rows, 2 * columns}, generator, at::kFloat).mul_(spread).to(format);
    dy = at::randn({rows, columns}, generator, at::kFloat).to(format);
  }
};

struct Results {
  at::Tensor y, dx;
};

Results by_library(at::ScalarType format, const Case& c) {
  const auto x = leaf(c.x, format);
  const auto parts = x.chunk(2, 1);
  const auto y = at::silu(parts[0]) * parts[1];
  y.backward(c.dy.to(format));
  return {y.detach(), x.grad()};
}

template <typename Number>
Results by_kernels(const SwigluKernels& kernels, const Case& c) {
  const auto numbers = [](const at::Tensor& t) { return static_cast<Number*>(t.data_ptr()); };
  const int64_t rows = c.dy.size(0), columns = c.dy.size(1);
  Results r{at::empty_like(c.dy), at::empty_like(c.x)};
  const SwigluRows<Number> forward{numbers(c.x), numbers(r.y), rows, columns};
  const SwigluGradientRows<Number> backward{numbers(c.dy), numbers(c.x), numbers(r.dx), rows,
                                            columns};
  if constexpr (std::is_same_v<Number, float>) {
    kernels.forward_fp32(forward);
    kernels.backward_fp32(backward);
  } else {
    kernels.forward_bf16(forward);
    kernels.backward_bf16(backward);
  }
  return r;
}

Results by_kernels(Isa isa, const Case& c) {
  const auto kernels = kernels_for<SwigluKernels>(isa);
  return c.x.scalar_type() == at::kFloat ? by_kernels<float>(kernels, c)
                                         : by_kernels<Bf16>(kernels, c);
}

class SwigluOfIsa : public IsaTest {};

TEST_P(SwigluOfIsa, IsAsAccurateAsLibTorchForEveryShape) {
  for (const auto format : kFormats) {
    for (const double spread : {0.1, 1.0, 5.0}) {
      for (const int64_t columns : {1, 3, 16, 17, 333}) {
        const Case c(64, columns, format, spread);
        const auto found = by_kernels(GetParam(), c);
        const auto truth = by_library(at::kDouble, c), library = by_library(format, c);
        // Few numbers, or no fused multiply-add.
        const double rest = columns < 300 || GetParam() == Isa::kBaseline ? 0x1p-25 : 0x1p-27;
        EXPECT_LE(error_of(found.y, truth.y), error_of(library.y, truth.y) + rest)
            << format << " " << spread << " " << columns;
        EXPECT_LE(error_of(found.dx, truth.dx), error_of(library.dx, truth.dx) + rest)
            << format << " " << spread << " " << columns;
      }
    }
  }
}

TEST_P(SwigluOfIsa, IsCorrectAtTheLimits) {
  Case c(1, 5, at::kFloat, 1);
  const float nan = std::nanf("");
  c.x = at::tensor({0.0F, 100.0F, -100.0F, 1e15F, nan, 2.0F, 2.0F, 2.0F, 2.0F, 2.0F}).view({1, 10});
  c.dy = at::ones({1, 5});
  const auto found = by_kernels(GetParam(), c);
  EXPECT_EQ(found.y[0][0].item<float>(), 0);
  EXPECT_EQ(found.y[0][1].item<float>(), 200);
  EXPECT_NEAR(found.y[0][2].item<float>(), 0, 1e-30);
  EXPECT_EQ(found.y[0][3].item<float>(), 2e15F);
  EXPECT_TRUE(std::isnan(found.y[0][4].item<float>()));
  EXPECT_EQ(found.dx[0][0].item<float>(), 1);
  EXPECT_EQ(found.dx[0][1].item<float>(), 2);
  EXPECT_NEAR(found.dx[0][2].item<float>(), 0, 1e-30);
  EXPECT_EQ(found.dx[0][6].item<float>(), 100);
}

INSTANTIATE_TEST_SUITE_P(Kernel, SwigluOfIsa, every_isa());

TEST(Swiglu, MatchesItsKernelsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const auto format : kFormats) {
    const Case c(602, 77, format, 2);
    const auto wanted = by_kernels(best_isa(), c);
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      EXPECT_TRUE(swiglu(c.x.view({14, 43, 154})).equal(wanted.y.view({14, 43, 77})));
      EXPECT_TRUE(swiglu_backward(c.dy, c.x).equal(wanted.dx));
    }
    at::set_num_threads(threads);
  }
}

TEST(Swiglu, RejectsUnsupportedInputs) {
  const auto x = at::randn({4, 6});
  EXPECT_TRUE(takes_swiglu(x));
  EXPECT_FALSE(takes_swiglu(x.t()));
  EXPECT_FALSE(takes_swiglu(at::randn({4, 5})));
  EXPECT_FALSE(takes_swiglu(x.to(at::kDouble)));
  EXPECT_FALSE(takes_swiglu(x.to(at::kMeta)));
  EXPECT_FALSE(takes_swiglu(x.narrow(0, 0, 0)));
  EXPECT_THROW(swiglu(x.t()), InternalError);
  EXPECT_THROW(swiglu_backward(x, x), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
