#include "gallop/kernel/cpu/linear_gemm.h"

#include "gallop/kernel/cpu/integers.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {

#if defined(__AMX_BF16__)

namespace {

// Tiles lie in one piece each, one after the other along what is summed over.
constexpr int64_t kSide = 16, kStep = 32, kTile = kSide * kStep, kSums = kSide * kSide;
constexpr int64_t kParts = LinearGemmKernels::kRows / kSide;
constexpr std::size_t kTileBytes = 64;  // From one row of a tile to the next.

void lay_panel(const Matrix<const Bf16>& weight, bool transposed_weight, int64_t panel, Bf16* to) {
  const int64_t first = panel * kSide;
  F32 block[kLanes];
  if (transposed_weight) {
    for (int64_t k = 0; k < weight.columns; k += kStep, to += kTile) {
      // A pair of bf16 side by side is a number of 32 bits.
      for (int64_t i = 0; i < kSide; ++i) block[i] = load_bits(weight.row(first + i) + k);
      transpose(block);
      for (int64_t i = 0; i < kSide; ++i) store_bits(to + i * kStep, block[i]);
    }
    return;
  }
  for (int64_t k = 0; k < weight.rows; k += 2, to += kStep) {
    store_bits(to, interleaved_bits(weight.row(k) + first, weight.row(k + 1) + first));
  }
}

// Rows as tiles: for each part of 16 rows those of `inner` numbers from column `column` on, zeros
// behind the last row.
inline void lay_rows(const Matrix<const Bf16>& x, int64_t column, int64_t inner, Bf16* to) {
  for (int64_t i = 0; i < LinearGemmKernels::kRows; ++i) {
    Bf16* const out = to + i / kSide * kSide * inner + i % kSide * kStep;
    const Bf16* const row = x.row(least(i, x.rows - 1)) + column;
    for (int64_t k = 0; k < inner; k += kStep) {
      store_bits(out + k / kStep * kTile, i < x.rows ? load_bits(row + k) : fill(0));
    }
  }
}

// sums (+)= four tiles of rows times one panel.
inline void multiply_panel(const Bf16* rows, const Bf16* panel, int64_t inner, float* sums,
                           bool add) {
  // The compiler does not know what these instructions read and write.
  asm volatile("" ::: "memory");
  if (add) {
    _tile_loadd(0, sums, kTileBytes);
    _tile_loadd(1, sums + kSums, kTileBytes);
    _tile_loadd(2, sums + 2 * kSums, kTileBytes);
    _tile_loadd(3, sums + 3 * kSums, kTileBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const int64_t part = kSide * inner;
  for (int64_t k = 0; k < inner; k += kStep, rows += kTile, panel += kTile) {
    _tile_loadd(6, panel, kTileBytes);
    _tile_loadd(4, rows, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, rows + part, kTileBytes);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(4, rows + 2 * part, kTileBytes);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(5, rows + 3 * part, kTileBytes);
    _tile_dpbf16ps(3, 5, 6);
  }
  _tile_stored(0, sums, kTileBytes);
  _tile_stored(1, sums + kSums, kTileBytes);
  _tile_stored(2, sums + 2 * kSums, kTileBytes);
  _tile_stored(3, sums + 3 * kSums, kTileBytes);
  asm volatile("" ::: "memory");
}

// The sums of two panels, which are 32 columns of y.
inline void round_panels(const float* sums, const Matrix<Bf16>& y, int64_t column) {
  for (int64_t i = 0; i < y.rows; ++i) {
    const F32 low = load(sums + i * kSide), high = load(sums + (kParts * kSide + i) * kSide);
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
    _mm512_storeu_si512(y.row(i) + column, both);
  }
}

// Part `i` of `parts` of the rows that follow, which lie in one piece, to the core's second cache.
inline void fetch_next(const Bf16* next, int64_t rows, int64_t columns, int64_t i, int64_t parts) {
  constexpr int64_t kLine = 32;
  const int64_t lines = rows * columns / kLine;
  for (int64_t line = lines * i / parts; line < lines * (i + 1) / parts; ++line) {
    _mm_prefetch(next + line * kLine, _MM_HINT_T1);
  }
}

void multiply(const Matrix<const Bf16>& x, const Bf16* panels, int64_t next_rows, Bf16* rows_room,
              float* sums_room, const Matrix<Bf16>& y) {
  constexpr int64_t kPanelSums = kParts * kSums;
  const int64_t all = x.columns, count = y.columns / kSide;
  for (int64_t first = 0; first < all; first += LinearGemmKernels::kInner) {
    const int64_t inner = least(LinearGemmKernels::kInner, all - first);
    const bool whole = inner == all, last = first + inner == all;
    lay_rows(x, first, inner, rows_room);
    for (int64_t panel = 0; panel < count; panel += 2) {
      // Sums that are complete at once need only room for two panels.
      float* const sums = sums_room + (whole ? 0 : panel * kPanelSums);
      for (int64_t i = 0; i < 2; ++i) {
        multiply_panel(rows_room, panels + (panel + i) * kSide * all + first * kSide, inner,
                       sums + i * kPanelSums, first > 0);
      }
      if (last) {
        fetch_next(x.row(x.rows), next_rows, all, panel / 2, count / 2);
        fetch_next(y.row(y.rows), next_rows, y.columns, panel / 2, count / 2);
        round_panels(sums, y, panel * kSide);
      }
    }
  }
}

}  // namespace

template <>
LinearGemmKernels make_kernels<LinearGemmKernels, kIsa>() {
  return {.lay_panel = lay_panel, .multiply = multiply};
}

#else

template <>
LinearGemmKernels make_kernels<LinearGemmKernels, kIsa>() {
  return {};
}

#endif

}  // namespace gallop::kernel
