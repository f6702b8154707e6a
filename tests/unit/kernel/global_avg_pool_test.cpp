#include "gallop/kernel/global_avg_pool.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr at::ScalarType kFormats[] = {at::kFloat, at::kBFloat16};

at::Tensor images(at::IntArrayRef sizes, at::ScalarType format) {
  return at::randn(sizes).to(format).contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor by_library(const at::Tensor& x) {
  return at::avg_pool2d(x, {x.size(2), x.size(3)}).flatten(1);
}

at::Tensor gradient_by_library(const at::Tensor& dy, const at::Tensor& x) {
  return at::avg_pool2d_backward(dy.view({x.size(0), x.size(1), 1, 1}), x, {x.size(2), x.size(3)},
                                 {}, {0, 0}, false, true, std::nullopt);
}

class GlobalAvgPoolOfIsa : public IsaTest {};

INSTANTIATE_TEST_SUITE_P(Isas, GlobalAvgPoolOfIsa, every_isa());

TEST_P(GlobalAvgPoolOfIsa, HasTheBitsOfLibTorchForSmallImages) {
  at::manual_seed(4);
  for (const at::ScalarType format : kFormats) {
    for (const int64_t channels : {1, 3, 16, 33, 64, 100, 512}) {
      const auto x = images({3, channels, 8, 7}, format);
      EXPECT_TRUE(at::equal(global_avg_pool_by(GetParam(), x), by_library(x))) << channels;
      const auto dy = at::randn({3, channels}).to(format);
      dy.index_put_({at::tensor({0})}, at::zeros({channels}, format).neg());
      const auto dx = global_avg_pool_backward_by(GetParam(), dy, 8, 7);
      const auto expected = gradient_by_library(dy, x);
      EXPECT_TRUE(dx.is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(at::equal(dx, expected)) << channels;
      EXPECT_TRUE(at::equal(dx.signbit(), expected.signbit())) << channels;
    }
  }
}

TEST_P(GlobalAvgPoolOfIsa, IsAsAccurateAsLibTorchForLargeImages) {
  at::manual_seed(5);
  for (const at::ScalarType format : kFormats) {
    const auto x = images({2, 80, 57, 113}, format) + 3;
    const auto truth = by_library(x.to(at::kDouble));
    const auto found = global_avg_pool_by(GetParam(), x);
    EXPECT_EQ(found.scalar_type(), format);
    EXPECT_LE(error_of(found, truth), error_of(by_library(x), truth));
    EXPECT_LE(error_of(found, truth), 4 * rounding_of(format));
  }
}

TEST(GlobalAvgPool, IsBitIdenticalForAnyNumberOfThreads) {
  at::manual_seed(6);
  const int threads = at::get_num_threads();
  const auto x = images({5, 130, 31, 40}, at::kBFloat16);
  const auto dy = at::randn({5, 130});
  const auto first = global_avg_pool(x), first_gradient = global_avg_pool_backward(dy, 31, 40);
  for (const int count : {1, 3, 8}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(global_avg_pool(x), first));
    EXPECT_TRUE(at::equal(global_avg_pool_backward(dy, 31, 40), first_gradient));
  }
  at::set_num_threads(threads);
}

TEST(GlobalAvgPool, TakesImagesInChannelsLastAlone) {
  EXPECT_TRUE(takes_global_avg_pool(images({2, 8, 4, 4}, at::kFloat)));
  EXPECT_FALSE(takes_global_avg_pool(at::zeros({2, 8, 4, 4})));
  EXPECT_FALSE(takes_global_avg_pool(images({2, 8, 4, 4}, at::kDouble)));
  EXPECT_FALSE(takes_global_avg_pool(images({0, 8, 4, 4}, at::kFloat)));
  EXPECT_FALSE(takes_global_avg_pool(at::zeros({2, 8, 4})));
  EXPECT_THROW(global_avg_pool(at::zeros({2, 8, 4, 4})), InternalError);
  EXPECT_THROW(global_avg_pool_backward(at::zeros({2, 8, 4, 4}), 4, 4), InternalError);
  EXPECT_THROW(global_avg_pool_backward(at::zeros({2, 8}), 0, 4), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
