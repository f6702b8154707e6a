#include "gallop/kernel/cpu/gemm.h"
#include "gallop/kernel/cpu/pairs.h"
#include "gallop/kernel/cpu/simd.h"
#include "gallop/kernel/cpu/tiles.h"

// GEMMs in bf16 on machines that have instructions for them; gemm.cpp has the others.
namespace gallop::kernel {

#if defined(__AMX_BF16__)

namespace {

// A tile: 16 rows of 64 bytes. Tiles 0 to 3 hold c, 4 and 5 two parts of a, 6 and 7 two of b.
constexpr int64_t kRows = 16;
constexpr int64_t kInner = 32;  // Numbers of bf16 in a row.

constexpr TileSetup kSetup;
static_assert(sizeof(TileSetup) == GemmKernels<Bf16>::kStateBytes);

void begin(void* state) { begin_tiles(kSetup, state); }

struct Sides {
  const Bf16* a;
  std::size_t a_bytes;
  int64_t a_step;  // Numbers from one tile to that of the next columns.
  const Bf16* b;
  std::size_t b_bytes;
  int64_t k;
};

// The instructions take their tiles' numbers as they stand in the source, hence each by itself.
// 16 x (16 kCount) numbers of c.
template <int kCount>
void multiply_row_of_tiles(const Sides& sides, float* c, std::size_t c_bytes, bool add) {
  if (add) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (kCount > 1) _tile_loadd(1, c + kRows, c_bytes);
    if constexpr (kCount > 2) _tile_loadd(2, c + 2 * kRows, c_bytes);
    if constexpr (kCount > 3) _tile_loadd(3, c + 3 * kRows, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16* a = sides.a;
  for (int64_t l = 0; l < sides.k; l += kInner, a += sides.a_step) {
    const Bf16* b = sides.b + l * static_cast<int64_t>(sides.b_bytes / 4);
    _tile_loadd(4, a, sides.a_bytes);
    _tile_loadd(6, b, sides.b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kCount > 1) {
      _tile_loadd(7, b + 2 * kRows, sides.b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kCount > 2) {
      _tile_loadd(5, b + 4 * kRows, sides.b_bytes);
      _tile_dpbf16ps(2, 4, 5);
    }
    if constexpr (kCount > 3) {
      _tile_loadd(6, b + 6 * kRows, sides.b_bytes);
      _tile_dpbf16ps(3, 4, 6);
    }
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kCount > 1) _tile_stored(1, c + kRows, c_bytes);
  if constexpr (kCount > 2) _tile_stored(2, c + 2 * kRows, c_bytes);
  if constexpr (kCount > 3) _tile_stored(3, c + 3 * kRows, c_bytes);
}

// 32 x 32 of them.
void multiply_square_of_tiles(const Sides& sides, float* c, std::size_t c_bytes, bool add) {
  float* const c1 = c + kRows * static_cast<int64_t>(c_bytes / sizeof(float));
  const int64_t a1 = kRows * static_cast<int64_t>(sides.a_bytes / sizeof(Bf16));
  if (add) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + kRows, c_bytes);
    _tile_loadd(2, c1, c_bytes);
    _tile_loadd(3, c1 + kRows, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16* a = sides.a;
  for (int64_t l = 0; l < sides.k; l += kInner, a += sides.a_step) {
    const Bf16* b = sides.b + l * static_cast<int64_t>(sides.b_bytes / 4);
    _tile_loadd(4, a, sides.a_bytes);
    _tile_loadd(6, b, sides.b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 2 * kRows, sides.b_bytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + a1, sides.a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + kRows, c_bytes);
  _tile_stored(2, c1, c_bytes);
  _tile_stored(3, c1 + kRows, c_bytes);
}

void multiply_all_tiles(int64_t m, int64_t n, int64_t k, const Bf16* a, int64_t a_stride,
                        int64_t a_step, const Bf16* b, int64_t b_stride, float* c, int64_t c_stride,
                        bool add) {
  const auto c_bytes = static_cast<std::size_t>(c_stride) * sizeof(float);
  const auto sides_at = [&](int64_t i, int64_t j) -> Sides {
    return {.a = a + i * a_stride,
            .a_bytes = static_cast<std::size_t>(a_stride) * sizeof(Bf16),
            .a_step = a_step,
            .b = b + 2 * j,
            .b_bytes = static_cast<std::size_t>(b_stride) * 2 * sizeof(Bf16),
            .k = k};
  };
  int64_t i = 0;
  for (; i + 2 * kRows <= m; i += 2 * kRows) {
    int64_t j = 0;
    for (; j + 2 * kRows <= n; j += 2 * kRows) {
      multiply_square_of_tiles(sides_at(i, j), c + i * c_stride + j, c_bytes, add);
    }
    if (j == n) continue;
    multiply_row_of_tiles<1>(sides_at(i, j), c + i * c_stride + j, c_bytes, add);
    multiply_row_of_tiles<1>(sides_at(i + kRows, j), c + (i + kRows) * c_stride + j, c_bytes, add);
  }
  if (i == m) return;
  int64_t j = 0;
  // As many sums as there are tiles, to hide the latency of each.
  for (; j + 4 * kRows <= n; j += 4 * kRows) {
    multiply_row_of_tiles<4>(sides_at(i, j), c + i * c_stride + j, c_bytes, add);
  }
  const Sides rest = sides_at(i, j);
  float* const c_rest = c + i * c_stride + j;
  if (n - j == 3 * kRows) multiply_row_of_tiles<3>(rest, c_rest, c_bytes, add);
  if (n - j == 2 * kRows) multiply_row_of_tiles<2>(rest, c_rest, c_bytes, add);
  if (n - j == kRows) multiply_row_of_tiles<1>(rest, c_rest, c_bytes, add);
}

void multiply_tiles(int64_t m, int64_t n, int64_t k, const Bf16* a, int64_t a_stride, const Bf16* b,
                    int64_t b_stride, float* c, int64_t c_stride, bool add) {
  multiply_all_tiles(m, n, k, a, a_stride, kInner, b, b_stride, c, c_stride, add);
}

void multiply_blocks_of_tiles(int64_t m, int64_t n, int64_t k, const Bf16* a, const Bf16* b,
                              int64_t b_stride, float* c, int64_t c_stride) {
  multiply_all_tiles(m, n, k, a, kInner, m * kInner, b, b_stride, c, c_stride, true);
}

}  // namespace

template <>
GemmKernels<Bf16> make_kernels<GemmKernels<Bf16>, kIsa>() {
  return {.begin = begin,
          .end = end_tiles,
          .multiply = multiply_tiles,
          .multiply_blocks = multiply_blocks_of_tiles};
}

#elif defined(__AVX512BF16__)

namespace {

void nothing(void* /*state*/) {}
void nothing(const void* /*state*/) {}

// 16 kVectors columns of c. A row of a is in pieces of kGemmPad numbers, `a_step` apart.
template <int64_t kRows, int64_t kVectors>
void multiply_columns(int64_t m, int64_t k, const Bf16* a, int64_t a_stride, int64_t a_step,
                      const PairedColumns& b, float* c, int64_t c_stride, bool add) {
  constexpr int64_t kStep = kGemmPad<Bf16>;
  for (int64_t i = 0; i < m; i += kRows) {
    PairSums<kRows, kVectors> sums;
    for (int64_t l = 0; l < k; l += kStep) {
      sums.add(a + i * a_stride + l / kStep * a_step, a_stride,
               {b.data + l / 2 * b.stride, b.stride, b.right}, kStep / 2);
    }
    sums.put(c + i * c_stride, c_stride, kLanes, add);
  }
}

void multiply_all(int64_t m, int64_t n, int64_t k, const Bf16* a, int64_t a_stride, int64_t a_step,
                  const Bf16* b, int64_t b_stride, float* c, int64_t c_stride, bool add) {
  const auto columns = [&](int64_t j) -> PairedColumns {
    return {b + 2 * j, 2 * b_stride, 2 * kLanes};
  };
  int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    multiply_columns<8, 2>(m, k, a, a_stride, a_step, columns(j), c + j, c_stride, add);
  }
  if (j < n) multiply_columns<16, 1>(m, k, a, a_stride, a_step, columns(j), c + j, c_stride, add);
}

void multiply(int64_t m, int64_t n, int64_t k, const Bf16* a, int64_t a_stride, const Bf16* b,
              int64_t b_stride, float* c, int64_t c_stride, bool add) {
  multiply_all(m, n, k, a, a_stride, kGemmPad<Bf16>, b, b_stride, c, c_stride, add);
}

void multiply_blocks(int64_t m, int64_t n, int64_t k, const Bf16* a, const Bf16* b,
                     int64_t b_stride, float* c, int64_t c_stride) {
  constexpr int64_t kBlock = kGemmPad<Bf16>;
  multiply_all(m, n, k, a, kBlock, m * kBlock, b, b_stride, c, c_stride, true);
}

}  // namespace

template <>
GemmKernels<Bf16> make_kernels<GemmKernels<Bf16>, kIsa>() {
  return {
      .begin = nothing, .end = nothing, .multiply = multiply, .multiply_blocks = multiply_blocks};
}

#endif

}  // namespace gallop::kernel
