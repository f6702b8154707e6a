#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "gallop/data/pixels/operations.h"

namespace gallop::data::pixels {

namespace {

double radians(double degrees) { return degrees * (std::numbers::pi / 180); }

}  // namespace

// M = T C R S C^-1, with the rotation and shears R, the scale S, the translation T and the move C
// to the center; in the order of torchvision's operations, as rounding shows in single pixels.
std::array<double, 6> affine_matrix(const AffineParameters& affine, int height, int width) {
  const double rotation = radians(affine.angle);
  const double shear_x = radians(affine.shear[0]), shear_y = radians(affine.shear[1]);
  const double center_x = affine.has_center ? affine.center[0] - width * 0.5 : 0;
  const double center_y = affine.has_center ? affine.center[1] - height * 0.5 : 0;
  const double cos_y = std::cos(shear_y), tan_x = std::tan(shear_x);
  const double from_x = center_x + affine.translate[0], from_y = center_y + affine.translate[1];

  const double a = std::cos(rotation - shear_y) / cos_y;
  const double b = -(a * tan_x + std::sin(rotation));
  const double c = std::sin(rotation - shear_y) / cos_y;
  const double d = std::cos(rotation) - c * tan_x;

  const double scale = affine.scale;
  std::array<double, 6> matrix{d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  matrix[2] += center_x - matrix[0] * from_x - matrix[1] * from_y;
  matrix[5] += center_y - matrix[3] * from_x - matrix[4] * from_y;
  return matrix;
}

// Two linear equations for each corner, solved by elimination with pivots.
std::optional<std::array<float, 8>> perspective_coefficients(const std::array<Point, 4>& corners,
                                                             int height, int width) {
  const std::array<Point, 4> from{Point{0, 0}, Point{width - 1, 0}, Point{width - 1, height - 1},
                                  Point{0, height - 1}};
  std::array<std::array<double, 9>, 8> rows{};
  for (size_t i = 0; i < 4; ++i) {
    const double x = corners[i][0], y = corners[i][1];
    for (size_t axis = 0; axis < 2; ++axis) {
      const double at = from[i][axis];
      std::array<double, 9>& row = rows[2 * i + axis];
      row[3 * axis] = x;
      row[3 * axis + 1] = y;
      row[3 * axis + 2] = 1;
      row[6] = -at * x;
      row[7] = -at * y;
      row[8] = at;
    }
  }
  for (size_t column = 0; column < 8; ++column) {
    const auto pivot = std::max_element(
        rows.begin() + static_cast<ptrdiff_t>(column), rows.end(),
        [&](const auto& a, const auto& b) { return std::abs(a[column]) < std::abs(b[column]); });
    constexpr double kSingular = 1e-9;
    if (std::abs((*pivot)[column]) < kSingular) return std::nullopt;
    std::swap(rows[column], *pivot);
    for (size_t i = 0; i < 8; ++i) {
      if (i == column) continue;
      const double factor = rows[i][column] / rows[column][column];
      for (size_t k = column; k < 9; ++k) rows[i][k] -= factor * rows[column][k];
    }
  }
  std::array<float, 8> coefficients{};
  for (size_t i = 0; i < 8; ++i) coefficients[i] = static_cast<float>(rows[i][8] / rows[i][i]);
  return coefficients;
}

Operation rotation(double degrees, int height, int width, Interpolation interpolation,
                   const std::vector<double>& fill) {
  double turn = std::fmod(degrees, 360);
  if (turn < 0) turn += 360;
  if (turn == 0 || turn == 180) return QuarterTurns{turn == 0 ? 0 : 2};
  if (height == width && (turn == 90 || turn == 270)) return QuarterTurns{turn == 90 ? 1 : 3};
  // torchvision's affine turns clockwise, its rotate counterclockwise.
  return Warp{.matrix = affine_matrix({.angle = -turn}, height, width),
              .interpolation = interpolation,
              .fill = fill};
}

}  // namespace gallop::data::pixels
