#include "gallop/kernel/cpu/layout.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

void pair(const Matrix<const Bf16>& from, Bf16* to) {
  for (int64_t i = 0; i < from.rows; i += 2) {
    const Bf16 *even = from.row(i), *odd = from.row(i + 1);
    for (int64_t j = 0; j < from.columns; j += kLanes) {
      store_bits(to + i * from.columns + 2 * j, interleaved_bits(even + j, odd + j));
    }
  }
}

void pair(const Matrix<const float>& from, float* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; j += kLanes) {
      store(to + i * from.columns + j, load(from.row(i) + j));
    }
  }
}

template <typename Number>
void transpose(const Matrix<const Number>& from, Number* to) {
  F32 block[kLanes];
  for (int64_t i = 0; i < from.rows; i += kLanes) {
    for (int64_t j = 0; j < from.columns; j += kLanes) {
      load_block(from.row(i) + j, from.stride, block);
      transpose(block);
      store_block(to + j * from.rows + i, from.rows, block);
    }
  }
}

// A pair of bf16 side by side is a number of 32 bits, and the transposed of those is VNNI-packed.
void transpose_and_pair(const Matrix<const Bf16>& from, Bf16* to) {
  F32 block[kLanes];
  for (int64_t i = 0; i < from.rows; i += kLanes) {
    for (int64_t j = 0; j < from.columns; j += 2 * kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) block[k] = load_bits(from.row(i + k) + j);
      transpose(block);
      for (int64_t k = 0; k < kLanes; ++k) {
        store_bits(to + (j + 2 * k) * from.rows + 2 * i, block[k]);
      }
    }
  }
}

void transpose_and_pair(const Matrix<const float>& from, float* to) { transpose(from, to); }

// Lanes of row i from column j on, or zeros beyond the matrix.
template <typename From>
inline F32 lanes_of(const AnyMatrix& from, int64_t i, int64_t j) {
  const int64_t left = from.columns - j;
  if (i >= from.rows || left <= 0) return fill(0);
  const From* at = static_cast<const From*>(from.data) + i * from.stride + j;
  return left < kLanes ? load(at, left) : load(at);
}

template <typename From, typename Number>
void copy_from(const AnyMatrix& from, Number* to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      store(to + i * columns + j, lanes_of<From>(from, i, j));
    }
  }
}

template <typename Number>
void copy(const AnyMatrix& from, Number* to, int64_t rows, int64_t columns) {
  from.bf16 ? copy_from<Bf16>(from, to, rows, columns) : copy_from<float>(from, to, rows, columns);
}

template <typename From>
void copy_and_pair_from(const AnyMatrix& from, Bf16* to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += 2) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      store_interleaved(to + i * columns + 2 * j, lanes_of<From>(from, i, j),
                        lanes_of<From>(from, i + 1, j), kLanes);
    }
  }
}

void copy_and_pair(const AnyMatrix& from, Bf16* to, int64_t rows, int64_t columns) {
  from.bf16 ? copy_and_pair_from<Bf16>(from, to, rows, columns)
            : copy_and_pair_from<float>(from, to, rows, columns);
}

void copy_and_pair(const AnyMatrix& from, float* to, int64_t rows, int64_t columns) {
  copy(from, to, rows, columns);
}

template <typename Number>
LayoutKernels<Number> all() {
  return {.pair = pair,
          .transpose = transpose<Number>,
          .transpose_and_pair = transpose_and_pair,
          .copy = copy<Number>,
          .copy_and_pair = copy_and_pair};
}

}  // namespace

template <>
LayoutKernels<float> make_kernels<LayoutKernels<float>, kIsa>() {
  return all<float>();
}

template <>
LayoutKernels<Bf16> make_kernels<LayoutKernels<Bf16>, kIsa>() {
  return all<Bf16>();
}

}  // namespace gallop::kernel
