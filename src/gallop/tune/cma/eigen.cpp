#include "gallop/tune/cma/eigen.h"

#include <cmath>

namespace gallop::tune {

namespace {

constexpr int kSweeps = 60;            // Convergence takes about eight.
constexpr double kNegligible = 1e-17;  // Relative to the geometric mean of the diagonal.

/// The Jacobi rotation that zeroes one off-diagonal element.
struct Rotation {
  double cosine, sine;
};

Rotation rotation_of(double first, double second, double between) {
  const double ratio = (second - first) / (2 * between);
  const double tangent =
      std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent);
  return {cosine, tangent * cosine};
}

void rotate_columns(SquareMatrix& matrix, size_t p, size_t q, Rotation rotation) {
  for (size_t i = 0; i < matrix.size(); ++i) {
    const double a = matrix.at(i, p), b = matrix.at(i, q);
    matrix.at(i, p) = rotation.cosine * a - rotation.sine * b;
    matrix.at(i, q) = rotation.sine * a + rotation.cosine * b;
  }
}

void rotate_rows(SquareMatrix& matrix, size_t p, size_t q, Rotation rotation) {
  for (size_t i = 0; i < matrix.size(); ++i) {
    const double a = matrix.at(p, i), b = matrix.at(q, i);
    matrix.at(p, i) = rotation.cosine * a - rotation.sine * b;
    matrix.at(q, i) = rotation.sine * a + rotation.cosine * b;
  }
}

/// Returns whether the element was not negligible yet.
bool rotate(EigenSystem& eigen, SquareMatrix& matrix, size_t p, size_t q) {
  const double between = matrix.at(p, q);
  const double scale = std::sqrt(std::abs(matrix.at(p, p) * matrix.at(q, q)));
  if (!(std::abs(between) > kNegligible * scale)) return false;
  const Rotation rotation = rotation_of(matrix.at(p, p), matrix.at(q, q), between);
  rotate_columns(matrix, p, q, rotation);
  rotate_rows(matrix, p, q, rotation);
  matrix.at(p, q) = matrix.at(q, p) = 0;
  rotate_columns(eigen.vectors, p, q, rotation);
  return true;
}

}  // namespace

SquareMatrix SquareMatrix::identity(size_t size) {
  SquareMatrix matrix(size);
  for (size_t i = 0; i < size; ++i) matrix.at(i, i) = 1;
  return matrix;
}

EigenSystem symmetric_eigen(SquareMatrix matrix) {
  const size_t size = matrix.size();
  EigenSystem eigen{.values = {}, .vectors = SquareMatrix::identity(size)};
  bool is_diagonal = false;
  for (int sweep = 0; sweep < kSweeps && !is_diagonal; ++sweep) {
    is_diagonal = true;
    for (size_t p = 0; p + 1 < size; ++p) {
      for (size_t q = p + 1; q < size; ++q) {
        if (rotate(eigen, matrix, p, q)) is_diagonal = false;
      }
    }
  }
  for (size_t i = 0; i < size; ++i) eigen.values.push_back(matrix.at(i, i));
  return eigen;
}

}  // namespace gallop::tune
