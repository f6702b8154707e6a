#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations/warps.h"
#include "unit/data/chi_square.h"
#include "unit/data/drawn.h"

namespace gallop::data {
namespace {

const ImageShape kShape{30, 41, 3};

const pixels::Warp& warp_of(const std::vector<pixels::Operation>& operations) {
  return std::get<pixels::Warp>(operations.at(0));
}

// The angle of a matrix that only rotates clockwise, in degrees.
double degrees_of(const std::array<double, 6>& matrix) {
  return std::atan2(matrix[1], matrix[0]) * 180 / std::numbers::pi;
}

TEST(RandomRotation, DrawsAnglesUniformly) {
  const auto augmentation = make_random_rotation({.degrees = {-20, 60}});
  EXPECT_EQ(augmentation->stage(), AugmentStage::kPixels);
  EXPECT_TRUE(augmentation->supports_masks());
  std::vector<double> fractions;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    if (std::holds_alternative<pixels::QuarterTurns>(operations[0])) {
      fractions.push_back(0.25);  // An angle of 0 is a copy.
      continue;
    }
    // Counterclockwise, against the matrix.
    fractions.push_back((-degrees_of(warp_of(operations).matrix) + 20) / 80);
  }
  expect_distribution_function(fractions, [](double x) { return x; });
}

TEST(RandomRotation, TurnsAroundACenter) {
  const auto augmentation =
      make_random_rotation({.degrees = {90, 90}, .fill = {7}, .center = {0, 0}});
  const auto operations = drawn(*augmentation, {10, 10, 1}, 0);
  const pixels::Warp& warp = warp_of(operations);
  EXPECT_EQ(warp.fill, (std::vector<double>{7}));
  // The corner on the top left, (-5, -5) from the center, stays in its place.
  EXPECT_NEAR(-5 * warp.matrix[0] - 5 * warp.matrix[1] + warp.matrix[2], -5, 1e-9);
  EXPECT_NEAR(-5 * warp.matrix[3] - 5 * warp.matrix[4] + warp.matrix[5], -5, 1e-9);
}

TEST(RandomAffine, DrawsTranslationsInWholePixels) {
  const auto augmentation = make_random_affine({.degrees = {0}, .translate = {0.1, 0.05}});
  std::map<std::string, int64_t> x, y;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto& matrix = warp_of(operations).matrix;
    ++x[fmt::format("{}", -matrix[2] + 0.0)];
    ++y[fmt::format("{}", -matrix[5] + 0.0)];
  }
  // U(-4.1, 4.1) and U(-1.5, 1.5), rounded.
  std::map<std::string, double> expected_x, expected_y;
  for (int at = -4; at <= 4; ++at) {
    expected_x[fmt::format("{}", static_cast<double>(at))] = (std::abs(at) == 4 ? 0.6 : 1) / 8.2;
  }
  for (int at = -1; at <= 1; ++at) expected_y[fmt::format("{}", static_cast<double>(at))] = 1.0 / 3;
  expect_distribution(x, expected_x, kDraws);
  expect_distribution(y, expected_y, kDraws);
}

TEST(RandomAffine, DrawsScalesAndShearsUniformly) {
  const auto augmentation =
      make_random_affine({.degrees = {0}, .scale = {0.5, 2}, .shear = {-10, 10, 5, 15}});
  std::vector<double> scales, shears_x, shears_y;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, kShape, i);
    const auto& m = warp_of(operations).matrix;
    // The matrix is the inverse of scale * [[1, -tan x], [-tan y, 1 + tan x tan y]].
    const double scale = 1 / std::sqrt(m[0] * m[4] - m[1] * m[3]);
    const auto degrees = [](double slope) { return std::atan(slope) * 180 / std::numbers::pi; };
    scales.push_back((scale - 0.5) / 1.5);
    shears_x.push_back((degrees(m[1] * scale) + 10) / 20);
    shears_y.push_back((degrees(m[3] * scale) - 5) / 10);
  }
  for (const auto& fractions : {scales, shears_x, shears_y}) {
    expect_distribution_function(fractions, [](double x) { return x; });
  }
}

// Each corner moves inwards by 0 to int(0.4 * half of the side) pixels, uniformly.
TEST(RandomPerspective, DrawsCornersAsTorchvisionDoes) {
  const auto augmentation = make_random_perspective({.distortion_scale = 0.4, .p = 0.75});
  EXPECT_EQ(augmentation->stage(), AugmentStage::kPixels);
  EXPECT_TRUE(augmentation->supports_masks());
  const ImageShape shape{11, 15, 3};
  // The source of each corner's place is the corner of the image.
  const std::array<pixels::Point, 4> from{pixels::Point{0, 0}, {14, 0}, {14, 10}, {0, 10}};
  std::map<std::string, int64_t> drawn_or_not, counts_x, counts_y;
  for (int64_t i = 0; i < kDraws; ++i) {
    const auto operations = drawn(*augmentation, shape, i);
    ++drawn_or_not[operations.empty() ? "no" : "yes"];
    if (operations.empty()) continue;
    const auto& by = std::get<pixels::Perspective>(operations[0]).coefficients;
    const size_t corner = static_cast<size_t>(i % 4);
    // Solves for the place (x, y) that the coefficients map to the corner.
    const double u = from[corner][0], v = from[corner][1];
    const double a = by[0] - u * by[6], b = by[1] - u * by[7], c = u - by[2];
    const double d = by[3] - v * by[6], e = by[4] - v * by[7], f = v - by[5];
    const double x = (c * e - b * f) / (a * e - b * d), y = (a * f - c * d) / (a * e - b * d);
    ++counts_x[std::to_string(std::lround(std::abs(x - u)))];
    ++counts_y[std::to_string(std::lround(std::abs(y - v)))];
  }
  expect_distribution(drawn_or_not, {{"yes", 0.75}, {"no", 0.25}}, kDraws);
  // int(0.4 * 7) + 1 = 3 places along x, int(0.4 * 5) + 1 = 3 along y.
  const std::map<std::string, double> thirds{{"0", 1.0 / 3}, {"1", 1.0 / 3}, {"2", 1.0 / 3}};
  expect_distribution(counts_x, thirds, drawn_or_not["yes"]);
  expect_distribution(counts_y, thirds, drawn_or_not["yes"]);
}

TEST(RandomPerspective, LeavesLinesAlone) {
  const auto augmentation = make_random_perspective({.p = 1});
  EXPECT_TRUE(drawn(*augmentation, {1, 9, 3}, 0).empty());
  EXPECT_FALSE(drawn(*augmentation, {2, 2, 3}, 0).empty());
}

TEST(RandomWarps, RefuseRangesThatAreNone) {
  EXPECT_THROW(make_random_rotation({.degrees = {3, 1}}), UsageError);
  EXPECT_THROW(make_random_rotation({.degrees = {-3}}), UsageError);
  EXPECT_THROW(make_random_rotation({.center = {1}}), UsageError);
  EXPECT_THROW(make_random_affine({.translate = {0.1}}), UsageError);
  EXPECT_THROW(make_random_affine({.scale = {2, 1}}), UsageError);
  EXPECT_THROW(make_random_affine({.shear = {1, 2, 3}}), UsageError);
  EXPECT_THROW(make_random_affine({.shear = {1, 2, 4, 3}}), UsageError);
  EXPECT_THROW(make_random_affine({.fill = {1, 2}})->check(kShape), UsageError);
}

}  // namespace
}  // namespace gallop::data
