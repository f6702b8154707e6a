#include "gallop/tune/gaussian_process/matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "gallop/tune/best_variant.h"

namespace gallop::tune {

namespace {

constexpr size_t kLanes = Matrix::kLanes;
constexpr size_t kBlock = 32;  // Block size of the factorization.

using Lanes [[gnu::vector_size(kLanes * sizeof(double)), gnu::aligned(sizeof(double))]] = double;

// Reduces the lanes pairwise.
[[gnu::always_inline]] inline double sum_of(const Lanes& lanes) {
  const auto half = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3) +
                    __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
  const auto pair =
      __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
  return pair[0] + pair[1];
}

// A register-blocked kernel: the products of kRows rows with kColumns rows.
template <size_t kRows, size_t kColumns>
[[gnu::always_inline]] inline void add_tile(double factor, Rows a, Rows b, size_t depth,
                                            double* sums, size_t sums_stride) {
  Lanes tile[kRows][kColumns] = {};
  for (size_t k = 0; k < depth; k += kLanes) {
    for (size_t i = 0; i < kRows; ++i) {
      const Lanes left = *reinterpret_cast<const Lanes*>(a.data + i * a.stride + k);
      for (size_t j = 0; j < kColumns; ++j) {
        tile[i][j] += left * *reinterpret_cast<const Lanes*>(b.data + j * b.stride + k);
      }
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      sums[i * sums_stride + j] += factor * sum_of(tile[i][j]);
    }
  }
}

template <size_t kRows, size_t kColumns>
[[gnu::always_inline]] inline void add_strip(double factor, Rows a, Rows b, size_t depth,
                                             double* sums, size_t sums_stride) {
  size_t j = 0;
  for (; j + kColumns <= b.count; j += kColumns) {
    add_tile<kRows, kColumns>(factor, a, {b.data + j * b.stride, b.stride, kColumns}, depth,
                              sums + j, sums_stride);
  }
  for (; j < b.count; ++j) {
    add_tile<kRows, 1>(factor, a, {b.data + j * b.stride, b.stride, 1}, depth, sums + j,
                       sums_stride);
  }
}

template <size_t kRows, size_t kColumns>
[[gnu::always_inline]] inline void add_all(double factor, Rows a, Rows b, size_t depth,
                                           double* sums, size_t sums_stride) {
  size_t i = 0;
  for (; i + kRows <= a.count; i += kRows) {
    add_strip<kRows, kColumns>(factor, {a.data + i * a.stride, a.stride, kRows}, b, depth,
                               sums + i * sums_stride, sums_stride);
  }
  for (; i < a.count; ++i) {
    add_strip<1, kColumns>(factor, {a.data + i * a.stride, a.stride, 1}, b, depth,
                           sums + i * sums_stride, sums_stride);
  }
}

// One copy per instruction set, with as many accumulators as it has registers (see
// data/normalize.cpp on why not target_clones).
void add_plain(double factor, Rows a, Rows b, size_t depth, double* sums, size_t sums_stride) {
  add_all<1, 2>(factor, a, b, depth, sums, sums_stride);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_avx2(double factor, Rows a, Rows b, size_t depth, double* sums,
                                      size_t sums_stride) {
  add_all<2, 3>(factor, a, b, depth, sums, sums_stride);
}

[[gnu::target("avx512f,prefer-vector-width=512")]] void add_avx512(double factor, Rows a, Rows b,
                                                                   size_t depth, double* sums,
                                                                   size_t sums_stride) {
  add_all<4, 4>(factor, a, b, depth, sums, sums_stride);
}
#else
constexpr auto add_avx2 = add_plain, add_avx512 = add_plain;
#endif

using BlockValues = std::array<double, kBlock * kBlock>;

// Factors a diagonal block and inverts its factor, in rows of kBlock.
bool factor_block(Matrix& matrix, size_t begin, size_t size, BlockValues& inverse) {
  inverse.fill(0);
  for (size_t i = 0; i < size; ++i) {
    double* const row = matrix.row(begin + i) + begin;
    for (size_t j = 0; j <= i; ++j) {
      const double* const other = matrix.row(begin + j) + begin;
      double sum = row[j];
      for (size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      if (j < i) {
        row[j] = sum / other[j];
      } else if (sum > 0 && std::isfinite(sum)) {
        row[i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
    double* const out = inverse.data() + i * kBlock;
    for (size_t k = 0; k < i; ++k) {
      for (size_t j = 0; j <= k; ++j) out[j] -= row[k] * inverse[k * kBlock + j];
    }
    for (size_t j = 0; j < i; ++j) out[j] /= row[i];
    out[i] = 1 / row[i];
  }
  return true;
}

// Multiplies the rows below a diagonal block by the transpose of its factor's inverse.
void solve_panel(Matrix& matrix, size_t begin, size_t size, const BlockValues& inverse) {
  std::array<double, kBlock> solved{};
  for (size_t i = begin + size; i < matrix.rows(); ++i) {
    double* const row = matrix.row(i) + begin;
    solved.fill(0);
    add_products(1, {row, matrix.stride(), 1}, {inverse.data(), kBlock, size}, Matrix::padded(size),
                 solved.data(), kBlock);
    std::copy_n(solved.begin(), size, row);
  }
}

// Computes the columns of the transposed inverse that belong to a block of rows of the factor.
void invert_rows(const Matrix& factor, size_t begin, size_t size, const BlockValues& inverse,
                 Matrix& transposed) {
  BlockValues products{};
  for (size_t first = 0; first < begin; first += kBlock) {
    products.fill(0);
    add_products(1, {transposed.row(first) + first, transposed.stride(), kBlock},
                 {factor.row(begin) + first, factor.stride(), size}, begin - first, products.data(),
                 kBlock);
    add_products(-1, {products.data(), kBlock, kBlock}, {inverse.data(), kBlock, size}, kBlock,
                 transposed.row(first) + begin, transposed.stride());
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      transposed.at(begin + j, begin + i) = inverse[i * kBlock + j];
    }
  }
}

}  // namespace

void Matrix::resize(size_t rows, size_t columns) {
  const size_t stride = padded(columns);
  if (stride > stride_ || rows > capacity_) {
    // Over-allocates, as matrices grow by one row and column at a time.
    const size_t new_stride = stride > stride_ ? padded(columns + columns / 8) : stride_;
    const size_t new_capacity = rows > capacity_ ? rows + rows / 8 : capacity_;
    std::vector<double> values(new_capacity * new_stride);
    for (size_t i = 0; i < std::min(rows, rows_); ++i) {
      std::copy_n(row(i), std::min(columns, columns_), values.data() + i * new_stride);
    }
    values_ = std::move(values);
    stride_ = new_stride;
    capacity_ = new_capacity;
  } else {
    for (size_t i = 0; i < rows_; ++i) {
      const size_t kept = i < rows ? columns : 0;
      if (kept < columns_) std::fill(row(i) + kept, row(i) + columns_, 0.0);
    }
  }
  rows_ = rows;
  columns_ = columns;
}

void Matrix::reset(size_t rows, size_t columns) {
  rows_ = capacity_ = rows;
  columns_ = columns;
  stride_ = padded(columns);
  values_.assign(rows * stride_, 0.0);
}

void add_products(double factor, Rows a, Rows b, size_t depth, double* sums, size_t sums_stride) {
  static const auto best = best_variant(add_plain, add_avx2, add_avx512);
  best(factor, a, b, depth, sums, sums_stride);
}

bool factor_cholesky(Matrix& matrix, Matrix& inverse_transposed) {
  const size_t size = matrix.rows();
  inverse_transposed.reset(size, size);
  BlockValues inverse{};
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    add_products(-1, {matrix.row(begin), matrix.stride(), size - begin},
                 {matrix.row(begin), matrix.stride(), count}, begin, matrix.row(begin) + begin,
                 matrix.stride());
    if (!factor_block(matrix, begin, count, inverse)) return false;
    solve_panel(matrix, begin, count, inverse);
    invert_rows(matrix, begin, count, inverse, inverse_transposed);
  }
  return true;
}

void multiply_by_transposed(const Matrix& upper, Matrix& product) {
  const size_t size = upper.rows(), depth = Matrix::padded(size);
  product.reset(size, size);
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    add_products(1, {upper.row(begin) + begin, upper.stride(), count},
                 {upper.row(0) + begin, upper.stride(), begin + count}, depth - begin,
                 product.row(begin), product.stride());
  }
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.columns(), matrix.rows());
  for (size_t i = 0; i < matrix.rows(); ++i) {
    for (size_t j = 0; j < matrix.columns(); ++j) result.at(j, i) = matrix.at(i, j);
  }
  return result;
}

}  // namespace gallop::tune
