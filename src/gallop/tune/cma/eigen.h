#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// A square matrix, row by row.
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

/// Eigenvalues of a symmetric matrix, and their vectors in the columns, each of length 1.
struct EigenSystem {
  std::vector<double> values;
  SquareMatrix vectors;
};

/// By rotations of two coordinates at a time (Jacobi's method, in the order of Golub and Van Loan,
/// "Matrix Computations", section 8.5); to the precision of a double. Eigenvalues come in no order.
EigenSystem symmetric_eigen(SquareMatrix matrix);

}  // namespace gallop::tune
