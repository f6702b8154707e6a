#include "gallop/kernel/conv2d_wgrad.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/conv2d_cases.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

class Conv2dWeightOf : public Conv2dTest {
 protected:
  at::Tensor by_library(at::ScalarType format) const {
    return gradient_by_library(format, /*of_x=*/false);
  }
  at::Tensor result() const { return conv2d_wgrad_by(GetParam().isa, dy, x, GetParam().window); }
};

TEST_P(Conv2dWeightOf, IsAsAccurateAsLibTorch) {
  const auto truth = by_library(at::kDouble), found = result();
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_EQ(found.sizes(), truth.sizes());
  // LibTorch's fp32 has the same numbers, exactly; its bf16 rounds the result.
  EXPECT_LE(error_of(found, truth), std::max(1e-6, 2 * error_of(by_library(at::kFloat), truth)));
  EXPECT_LE(error_of(found, truth), error_of(by_library(at::kBFloat16), truth));
}

TEST_P(Conv2dWeightOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto first = result();
  for (const int count : {1, 3, 8}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(result(), first));
  }
  at::set_num_threads(threads);
}

std::vector<Conv2dCase> cases() {
  constexpr Conv2dWindow k3x3 = {3, 3, 1, 1}, kHalving = {3, 3, 2, 1}, k1x1 = {1, 1, 1, 0};
  std::vector<Conv2dCase> all = {{4, 16, 32, 32, 16, k3x3},
                                 {9, 32, 16, 16, 32, k3x3},
                                 {37, 64, 8, 8, 64, k3x3},
                                 {5, 3, 32, 32, 16, k3x3},
                                 {5, 16, 32, 32, 32, kHalving},
                                 {6, 64, 16, 16, 48, {1, 1, 2, 0}},
                                 {3, 40, 6, 10, 16, k3x3},
                                 {2, 33, 7, 12, 32, k1x1},
                                 {1, 5, 9, 4, 16, kHalving},
                                 {2, 3, 40, 36, 64, {7, 7, 2, 3}},
                                 {1, 1, 1, 2, 16, k1x1},
                                 {3, 17, 5, 7, 80, {2, 4, 1, 1}},
                                 {2, 31, 11, 13, 16, {5, 2, 3, 2}},
                                 {130, 128, 2, 2, 16, k3x3},
                                 {2, 32, 64, 64, 16, {1, 3, 1, 0}},
                                 {2, 48, 3, 9, 32, {3, 2, 4, 0}}};
  for (const Isa isa : kLesserIsas) {
    all.push_back({3, 20, 8, 8, 16, k3x3, isa});
    all.push_back({3, 40, 9, 8, 32, kHalving, isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dWeightOf, testing::ValuesIn(cases()), name_of);

TEST(Conv2dWeight, DoesNotSpreadNonFiniteValues) {
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 8, 8}), dy = images({2, 16, 8, 8});
  x[0][3].fill_(std::numeric_limits<double>::quiet_NaN());
  const auto found = conv2d_wgrad(dy, x, kWindow);
  EXPECT_TRUE(found.select(1, 3).isnan().all().item<bool>());
  EXPECT_FALSE(found.narrow(1, 0, 3).isnan().any().item<bool>());
  EXPECT_FALSE(found.narrow(1, 4, 12).isnan().any().item<bool>());
}

TEST(Conv2dWeight, IsUsedOnlyWhereItIsSupported) {
  if (best_isa() < Isa::kAvx512Bf16) GTEST_SKIP() << "this machine has no products of bf16";
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 8, 8});
  EXPECT_TRUE(takes_conv2d_wgrad(x, 16, kWindow));
  EXPECT_FALSE(takes_conv2d_wgrad(x, 10, kWindow));
  EXPECT_FALSE(takes_conv2d_wgrad(x.to(at::kFloat), 16, kWindow));
  EXPECT_FALSE(takes_conv2d_wgrad(x.contiguous(), 16, kWindow));
  EXPECT_FALSE(takes_conv2d_wgrad(images({2, 16, 8, 7}), 16, kWindow));
  EXPECT_FALSE(takes_conv2d_wgrad(images({2, 16, 2, 2}), 16, {5, 5, 1, 0}));
  EXPECT_FALSE(takes_conv2d_wgrad(images({0, 16, 8, 8}), 16, kWindow));
}

TEST(Conv2dWeight, IsPreferredForSmallWeights) {
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const bool pairs = best_isa() >= Isa::kAvx512Bf16, tiles = best_isa() >= Isa::kAmx;
  EXPECT_EQ(prefers_conv2d_wgrad(images({2, 64, 32, 32}), 64, kWindow), pairs);
  EXPECT_EQ(prefers_conv2d_wgrad(images({2, 3, 32, 32}), 64, kWindow), tiles);
  EXPECT_EQ(prefers_conv2d_wgrad(images({2, 128, 32, 32}), 128, kWindow), tiles);
  EXPECT_EQ(prefers_conv2d_wgrad(images({2, 64, 8, 8}), 64, kWindow), tiles);
  EXPECT_FALSE(prefers_conv2d_wgrad(images({2, 64, 32, 32}), 10, kWindow));
}

TEST(Conv2dWeight, RejectsInvalidShapes) {
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 8, 8});
  EXPECT_THROW(conv2d_wgrad(images({2, 16, 6, 6}), x, kWindow), InternalError);
  EXPECT_THROW(conv2d_wgrad(images({1, 16, 8, 8}), x, kWindow), InternalError);
  EXPECT_THROW(conv2d_wgrad(images({2, 10, 8, 8}), x, kWindow), InternalError);
  EXPECT_THROW(conv2d_wgrad(x.contiguous(), x, kWindow), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
