#include "gallop/data/augmentations/blur.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/pixels/gaussian_kernel.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"

namespace gallop::data {
namespace {

const ImageShape kShape{20, 30, 3};

TEST(GaussianBlur, DrawsDeviationsUniformly) {
  const auto augmentation = make_gaussian_blur({.kernel_size = {5, 3}, .sigma = {0.5, 3}});
  EXPECT_EQ(augmentation->stage(), AugmentStage::kPixels);
  EXPECT_TRUE(augmentation->supports_masks()) << "which stay as they are";
  std::vector<double> fractions;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto& blur = std::get<pixels::GaussianBlur>(operations.at(0));
    ASSERT_EQ(blur.kernel_width, 5);
    ASSERT_EQ(blur.kernel_height, 3);
    ASSERT_EQ(blur.sigma_x, blur.sigma_y);
    fractions.push_back((blur.sigma_x - 0.5) / 2.5);
  }
  expect_distribution_function(fractions, [](double x) { return x; });
}

TEST(GaussianBlur, RefusesKernelsThatAreNone) {
  EXPECT_THROW(make_gaussian_blur({}), UsageError);
  EXPECT_THROW(make_gaussian_blur({.kernel_size = {4}}), UsageError);
  EXPECT_THROW(make_gaussian_blur({.kernel_size = {3, 3, 3}}), UsageError);
  EXPECT_THROW(make_gaussian_blur({.kernel_size = {3}, .sigma = {2, 1}}), UsageError);
  EXPECT_THROW(make_gaussian_blur({.kernel_size = {3}, .sigma = {}}), UsageError);
  const auto wide = make_gaussian_blur({.kernel_size = {41, 3}});
  EXPECT_NO_THROW(wide->check(kShape));
  EXPECT_THROW(wide->check({20, 20, 3}), UsageError);
}

TEST(GaussianBlur, OfATinyDeviationChangesNothing) {
  for (const double sigma : {1e-2, 1e-6, 1e-12, 1e-30}) {
    const std::vector<float> kernel = pixels::gaussian_kernel(
        {.kernel_width = 3, .kernel_height = 3, .sigma_x = sigma, .sigma_y = sigma});
    EXPECT_EQ(kernel, (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0})) << sigma;
  }
}

}  // namespace
}  // namespace gallop::data
