#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// Numbers in rows. Each row is followed by zeros up to a multiple of kLanes, so that loops over
/// its numbers need no remainder; whoever writes to a row keeps them at zero.
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

  /// What stays within both sizes is kept, what is new is zero.
  void resize(size_t rows, size_t columns);
  /// All zero. Takes new memory only where there is not enough.
  void reset(size_t rows, size_t columns);

  static size_t padded(size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

 private:
  size_t rows_ = 0, columns_ = 0, stride_ = 0, capacity_ = 0;
  std::vector<double> values_;
};

/// Some rows of a matrix from some column on.
struct Rows {
  const double* data = nullptr;
  size_t stride = 0, count = 0;
};

/// Adds `factor` times the product of `a` and the transpose of `b` to `sums`, whose rows are
/// `sums_stride` apart. `depth` columns count, a multiple of Matrix::kLanes. Each sum is taken in
/// one order, on every machine and in every blocking.
void add_products(double factor, Rows a, Rows b, size_t depth, double* sums, size_t sums_stride);

/// Turns the lower triangle of a positive definite matrix into its Cholesky factor L; what is above
/// the diagonal is not read, and means nothing afterwards. `inverse_transposed` becomes the
/// transpose of the inverse of L, an upper triangle with zeros below. False where the matrix is not
/// positive definite; both mean nothing then.
bool factor_cholesky(Matrix& matrix, Matrix& inverse_transposed);

/// The lower triangle of the product of an upper triangle and its transpose.
void multiply_by_transposed(const Matrix& upper, Matrix& product);

Matrix transposed(const Matrix& matrix);

}  // namespace gallop::tune
