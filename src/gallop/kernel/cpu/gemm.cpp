#include "gallop/kernel/cpu/gemm.h"

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

// Rows and vectors of c that stay in registers.
#if defined(__AVX512F__)
constexpr int64_t kRowsAtOnce = 8, kVectorsAtOnce = 2;
#else
constexpr int64_t kRowsAtOnce = 4, kVectorsAtOnce = 1;
#endif
static_assert(kGemmPad<float> % kRowsAtOnce == 0 && kGemmPad<float> % kLanes == 0);

void nothing(void* /*state*/) {}
void nothing(const void* /*state*/) {}

// The left side of a product: rows in memory, or columns, and then those of its transposed.
template <typename Number>
struct Rows {
  const Number* data;
  int64_t stride;

  const Number* at(int64_t row, int64_t inner) const { return data + row * stride + inner; }
};
struct Columns {
  const float* data;
  int64_t stride;

  const float* at(int64_t row, int64_t inner) const { return data + inner * stride + row; }
};

// Adds products of column l of a and row l of b, or in bf16 of two of them.
template <int64_t kVectors>
struct Sums {
  F32 at[kRowsAtOnce][kVectors];

  template <typename Left>
  void add(const Left& a, int64_t i, int64_t l, const float* b) {
    F32 row[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes);
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      const F32 factor = fill(*a.at(i + r, l));
      for (int64_t v = 0; v < kVectors; ++v) at[r][v] = fma(factor, row[v], at[r][v]);
    }
  }
  void add(const Rows<Bf16>& a, int64_t i, int64_t l, const Bf16* b) {
    F32 even[kVectors], odd[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      load_interleaved(b + 2 * v * kLanes, even[v], odd[v]);
    }
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      const Bf16* pair = a.at(i + r, l);
      const F32 first = fill(as_fp32(pair[0])), second = fill(as_fp32(pair[1]));
      for (int64_t v = 0; v < kVectors; ++v) {
        at[r][v] = fma(second, odd[v], fma(first, even[v], at[r][v]));
      }
    }
  }
};

// Columns [j, j + kVectors * kLanes) of c.
template <int64_t kVectors, typename Left, typename Number>
void multiply_columns(int64_t j, int64_t m, int64_t k, const Left& a, const Number* b,
                      int64_t b_stride, float* c, int64_t c_stride, bool add) {
  constexpr int64_t kInterleaved = __is_same(Number, Bf16) ? 2 : 1;  // Rows of b in one.
  for (int64_t i = 0; i < m; i += kRowsAtOnce) {
    float* to = c + i * c_stride + j;
    Sums<kVectors> sums{};
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      for (int64_t v = 0; v < kVectors; ++v) sums.at[r][v] = fill(0);
    }
    for (int64_t l = 0; l < k; l += kInterleaved) {
      sums.add(a, i, l, b + l * b_stride + kInterleaved * j);
    }
    // What is there comes last: sums of sums err less.
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      for (int64_t v = 0; v < kVectors; ++v) {
        float* at = to + r * c_stride + v * kLanes;
        store(at, add ? load(at) + sums.at[r][v] : sums.at[r][v]);
      }
    }
  }
}

template <typename Left, typename Number>
void multiply_all(int64_t m, int64_t n, int64_t k, const Left& a, const Number* b, int64_t b_stride,
                  float* c, int64_t c_stride, bool add) {
  int64_t j = 0;
  for (; j + kVectorsAtOnce * kLanes <= n; j += kVectorsAtOnce * kLanes) {
    multiply_columns<kVectorsAtOnce>(j, m, k, a, b, b_stride, c, c_stride, add);
  }
  for (; j < n; j += kLanes) multiply_columns<1>(j, m, k, a, b, b_stride, c, c_stride, add);
}

template <typename Number>
void multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride, const Number* b,
              int64_t b_stride, float* c, int64_t c_stride, bool add) {
  multiply_all(m, n, k, Rows<Number>{a, a_stride}, b, b_stride, c, c_stride, add);
}

template <typename Number>
void multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a, const Number* b,
                     int64_t b_stride, float* c, int64_t c_stride) {
  constexpr int64_t kBlock = kGemmPad<Number>;
  for (int64_t l = 0; l < k; l += kBlock) {
    multiply(m, n, kBlock, a + l * m, kBlock, b + l * b_stride, b_stride, c, c_stride, true);
  }
}

void multiply_by_columns(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                         const float* b, int64_t b_stride, float* c, int64_t c_stride, bool add) {
  multiply_all(m, n, k, Columns{a, a_stride}, b, b_stride, c, c_stride, add);
}

}  // namespace

template <>
GemmKernels<float> make_kernels<GemmKernels<float>, kIsa>() {
  return {.begin = nothing,
          .end = nothing,
          .multiply = multiply<float>,
          .multiply_blocks = multiply_blocks<float>};
}

template <>
ColumnProductKernels make_kernels<ColumnProductKernels, kIsa>() {
  return {.multiply = multiply_by_columns};
}

#if !defined(__AVX512BF16__)

template <>
GemmKernels<Bf16> make_kernels<GemmKernels<Bf16>, kIsa>() {
  return {.begin = nothing,
          .end = nothing,
          .multiply = multiply<Bf16>,
          .multiply_blocks = multiply_blocks<Bf16>};
}

#endif

}  // namespace gallop::kernel
