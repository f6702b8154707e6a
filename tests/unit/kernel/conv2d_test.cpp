#include "gallop/kernel/conv2d.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/conv2d_cases.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

class Conv2dOf : public Conv2dTest {
 protected:
  at::Tensor by_library(at::ScalarType format) const {
    const Conv2dWindow& w = GetParam().window;
    return at::conv2d(x.to(format), weight.to(format), {}, w.stride, w.padding);
  }
  at::Tensor result() const { return conv2d_by(GetParam().isa, x, weight, {}, GetParam().window); }
  at::Tensor data() const {
    const Conv2dCase& c = GetParam();
    return conv2d_dgrad_by(c.isa, dy, weight, c.height, c.width, c.window);
  }
  bool has_data() const { return GetParam().width / GetParam().window.stride >= 16; }
};

TEST_P(Conv2dOf, IsAsAccurateAsLibTorch) {
  const auto truth = by_library(at::kDouble), found = result();
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  ASSERT_EQ(found.sizes(), truth.sizes());
  EXPECT_TRUE(found.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LE(error_of(found, truth), 1.01 * error_of(by_library(at::kBFloat16), truth));
}

TEST_P(Conv2dOf, AddsABiasBeforeItRounds) {
  const Conv2dCase& c = GetParam();
  const auto bias = at::randn({c.out}) * 10;
  const auto truth = by_library(at::kDouble) + bias.to(at::kDouble).view({-1, 1, 1});
  const auto found = conv2d_by(c.isa, x, weight, bias, c.window);
  EXPECT_LE(error_of(found, truth), rounding_of(at::kBFloat16));
  const auto narrow = bias.to(at::kBFloat16);
  EXPECT_TRUE(at::equal(conv2d_by(c.isa, x, weight, narrow, c.window),
                        conv2d_by(c.isa, x, weight, narrow.to(at::kFloat), c.window)));
}

TEST_P(Conv2dOf, HasGradientsAsAccurateAsLibTorchs) {
  if (!has_data()) GTEST_SKIP() << "too few columns for the gradient";
  const auto truth = gradient_by_library(at::kDouble, /*of_x=*/true), found = data();
  ASSERT_EQ(found.sizes(), truth.sizes());
  const auto library = gradient_by_library(at::kBFloat16, /*of_x=*/true);
  EXPECT_LE(error_of(found, truth), 1.01 * error_of(library, truth));
}

TEST_P(Conv2dOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto first = result(), first_data = has_data() ? data() : at::Tensor();
  for (const int count : {1, 3, 8}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(result(), first));
    if (has_data()) {
      EXPECT_TRUE(at::equal(data(), first_data));
    }
  }
  at::set_num_threads(threads);
}

std::vector<Conv2dCase> cases() {
  constexpr Conv2dWindow k3x3 = {3, 3, 1, 1}, kHalving = {3, 3, 2, 1};
  std::vector<Conv2dCase> all = {
      {4, 16, 32, 32, 16, k3x3},         {9, 32, 16, 16, 32, k3x3},
      {3, 64, 17, 19, 48, k3x3},         {5, 16, 32, 32, 32, kHalving},
      {3, 16, 33, 35, 32, kHalving},     {6, 16, 32, 32, 32, {1, 1, 2, 0}},
      {1, 16, 1, 16, 16, {1, 1, 1, 0}},  {1, 48, 5, 31, 16, {5, 2, 1, 2}},
      {2, 16, 6, 40, 16, {2, 5, 1, 3}},  {2, 16, 40, 50, 64, {7, 7, 2, 3}},
      {2, 32, 11, 70, 16, {3, 3, 3, 1}}, {2, 16, 8, 64, 16, {1, 3, 4, 0}},
      {130, 16, 4, 18, 16, {3, 3, 1, 0}}};
  for (const Isa isa : kLesserIsas) {
    all.push_back({3, 16, 9, 21, 16, k3x3, isa});
    all.push_back({3, 48, 9, 40, 32, kHalving, isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dOf, testing::ValuesIn(cases()), name_of);

TEST(Conv2d, SupportsWeightsOfAnyStrides) {
  at::manual_seed(3);
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 16, 16});
  const auto weight = at::randn({16, 16, 3, 3}).to(at::kBFloat16);
  const auto channels_last = weight.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(at::equal(conv2d_by(best_isa(), x, weight, {}, kWindow),
                        conv2d_by(best_isa(), x, channels_last, {}, kWindow)));
}

TEST(Conv2d, DoesNotSpreadNonFiniteValues) {
  const auto x = images({1, 16, 16, 32});
  const auto weight = at::randn({16, 16, 3, 3}).to(at::kBFloat16);
  x.select(3, 8).fill_(std::numeric_limits<double>::quiet_NaN());
  const auto found = conv2d_by(best_isa(), x, weight, {}, {3, 3, 1, 1});
  EXPECT_TRUE(found.narrow(3, 7, 3).isnan().all().item<bool>());
  EXPECT_FALSE(found.narrow(3, 0, 7).isnan().any().item<bool>());
  EXPECT_FALSE(found.narrow(3, 10, 22).isnan().any().item<bool>());
}

TEST(Conv2d, IsUsedOnlyWhereItIsFastest) {
  if (best_isa() < Isa::kAmx) GTEST_SKIP() << "this machine has no tiles";
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 16, 16});
  const auto weight = at::randn({16, 16, 3, 3}).to(at::kBFloat16);
  EXPECT_TRUE(takes_conv2d(x, weight, kWindow));
  EXPECT_TRUE(takes_conv2d_dgrad(x, weight, 16, 16, kWindow));
  EXPECT_FALSE(takes_conv2d(x.to(at::kFloat), weight.to(at::kFloat), kWindow));
  EXPECT_FALSE(takes_conv2d(x.contiguous(), weight, kWindow));
  EXPECT_FALSE(takes_conv2d(x.narrow(3, 1, 15), weight, kWindow));
  EXPECT_FALSE(takes_conv2d(images({2, 16, 16, 8}), weight, kWindow));
  EXPECT_FALSE(takes_conv2d(images({2, 24, 16, 16}), weight, kWindow));
  EXPECT_FALSE(takes_conv2d(x, weight, {5, 5, 1, 1}));
  const auto point = weight.narrow(2, 0, 1).narrow(3, 0, 1);
  EXPECT_FALSE(takes_conv2d(x, point, {1, 1, 1, 0}));
  EXPECT_TRUE(takes_conv2d_dgrad(x, point, 16, 16, {1, 1, 1, 0}));
  EXPECT_FALSE(takes_conv2d(images({0, 16, 16, 16}), weight, kWindow));
  EXPECT_FALSE(takes_conv2d_dgrad(x, weight, 16, 15, kWindow));
  EXPECT_FALSE(takes_conv2d_dgrad(x, weight, 31, 31, {3, 3, 2, 1}));
}

TEST(Conv2d, RejectsInvalidShapes) {
  constexpr Conv2dWindow kWindow = {3, 3, 1, 1};
  const auto x = images({2, 16, 16, 16});
  const auto weight = at::randn({16, 16, 3, 3}).to(at::kBFloat16);
  EXPECT_THROW(conv2d(x.contiguous(), weight, {}, kWindow), InternalError);
  EXPECT_THROW(conv2d(images({2, 32, 16, 16}), weight, {}, kWindow), InternalError);
  EXPECT_THROW(conv2d(x, weight, at::zeros({15}), kWindow), InternalError);
  EXPECT_THROW(conv2d_dgrad(x, weight, 18, 16, kWindow), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
