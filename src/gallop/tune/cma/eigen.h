#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// A square matrix in row-major order.
class SquareMatrix {
 public:
  explicit SquareMatrix(size_t size) : size_(size), values_(size * size) {}
  static SquareMatrix identity(size_t size);

  size_t size() const { return size_; }
  double& at(size_t row, size_t column) { return values_[row * size_ + column]; }
  double at(size_t row, size_t column) const { return values_[row * size_ + column]; }
  const std::vector<double>& values() const { return values_; }

 private:
  size_t size_;
  std::vector<double> values_;
};

/// The eigenvalues of a symmetric matrix; the columns of `vectors` are unit eigenvectors.
struct EigenSystem {
  std::vector<double> values;
  SquareMatrix vectors;
};

/// The eigendecomposition of a symmetric matrix by Jacobi's method (Golub and Van Loan, "Matrix
/// Computations", section 8.5), to double precision. Eigenvalues are not sorted.
EigenSystem symmetric_eigen(SquareMatrix matrix);

}  // namespace gallop::tune
