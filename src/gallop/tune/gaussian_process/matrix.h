#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// A row-major matrix. Each row is padded with zeros to a multiple of kLanes, so that loops over it
/// need no remainder; code that writes to a row must keep the padding at zero.
class Matrix {
 public:
  static constexpr size_t kLanes = 8;

  Matrix() = default;
  Matrix(size_t rows, size_t columns) { resize(rows, columns); }

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  size_t stride() const { return stride_; }
  double* row(size_t index) { return values_.data() + index * stride_; }
  const double* row(size_t index) const { return values_.data() + index * stride_; }
  double& at(size_t row_index, size_t column) { return row(row_index)[column]; }
  double at(size_t row_index, size_t column) const { return row(row_index)[column]; }

  /// Resizes; elements within both sizes are kept, new ones are zero.
  void resize(size_t rows, size_t columns);
  /// Resizes and zero-fills; reallocates only to grow.
  void reset(size_t rows, size_t columns);

  static size_t padded(size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

 private:
  size_t rows_ = 0, columns_ = 0, stride_ = 0, capacity_ = 0;
  std::vector<double> values_;
};

/// Rows of a matrix from some column on.
struct Rows {
  const double* data = nullptr;
  size_t stride = 0, count = 0;
};

/// sums += factor * a * b^T, with rows of `sums` `sums_stride` elements apart. `depth`, the number
/// of columns, is a multiple of Matrix::kLanes. The order of summation does not depend on the
/// machine or the blocking.
void add_products(double factor, Rows a, Rows b, size_t depth, double* sums, size_t sums_stride);

/// Factors the lower triangle of a positive definite matrix in place into its Cholesky factor L;
/// the strict upper triangle is neither read nor valid afterwards. `inverse_transposed` receives
/// L^-T, an upper triangle with zeros below. Returns false if the matrix is not positive definite;
/// both outputs are then invalid.
bool factor_cholesky(Matrix& matrix, Matrix& inverse_transposed);

/// The lower triangle of the product of an upper triangular matrix and its transpose.
void multiply_by_transposed(const Matrix& upper, Matrix& product);

Matrix transposed(const Matrix& matrix);

}  // namespace gallop::tune
