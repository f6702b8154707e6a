#pragma once

// The layout of a head's matrices in tiles, and arithmetic on rows of tiles.

#include "gallop/kernel/cpu/head_tiles.h"
#include "gallop/kernel/cpu/rotary.h"

namespace gallop::kernel {
namespace {

// Columns [32 c, 32 c + 32) of a matrix, padded with zeros.
struct Chunk {
  Chunk(const Rows& from, int64_t c)
      : data(from.data + kInner * c),
        rows(from.rows),
        stride(from.stride),
        columns(least(kInner, from.columns - kInner * c)),
        mask(static_cast<__mmask32>((uint64_t{1} << columns) - 1)) {}

  __m512i row(int64_t i) const {
    return i < rows ? _mm512_maskz_loadu_epi16(mask, data + i * stride) : _mm512_setzero_si512();
  }

  const Bf16* data;
  int64_t rows, stride, columns;
  __mmask32 mask;
};

// Transposes 16 x 16 elements of 32 bits. Four columns at a time are assembled from quarters of
// rows as they are loaded, which needs fewer shuffles than transposing whole rows.
inline void transpose_to(const void* from, int64_t stride_bytes, F32 (&columns)[kLanes]) {
  const auto* const bytes = static_cast<const char*>(from);
  const auto quarter = [&](int64_t row, int64_t column) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(bytes + row * stride_bytes + column * 4));
  };
  for (int64_t c = 0; c < kSide; c += 4) {
    __m512 t[4];
    for (int64_t k = 0; k < 4; ++k) {
      __m512 whole = _mm512_castps128_ps512(quarter(k, c));
      whole = _mm512_insertf32x4(whole, quarter(4 + k, c), 1);
      whole = _mm512_insertf32x4(whole, quarter(8 + k, c), 2);
      t[k] = _mm512_insertf32x4(whole, quarter(12 + k, c), 3);
    }
    const __m512 a = _mm512_unpacklo_ps(t[0], t[1]), b = _mm512_unpackhi_ps(t[0], t[1]);
    const __m512 d = _mm512_unpacklo_ps(t[2], t[3]), e = _mm512_unpackhi_ps(t[2], t[3]);
    columns[c] = {_mm512_shuffle_ps(a, d, 0x44)};
    columns[c + 1] = {_mm512_shuffle_ps(a, d, 0xee)};
    columns[c + 2] = {_mm512_shuffle_ps(b, e, 0x44)};
    columns[c + 3] = {_mm512_shuffle_ps(b, e, 0xee)};
  }
}

inline void turn_tile(const Bf16* from, Bf16* to) {
  F32 columns[kLanes];
  transpose_to(from, 64, columns);
  for (int64_t i = 0; i < kSide; ++i) store_bits(to + i * kInner, columns[i]);
}

// Lays out tiles of 16 rows each, from row `first` on.
inline void lay_rows(const Rows& from, int64_t first, int64_t chunks, Bf16* to) {
  for (int64_t c = 0; c < chunks; ++c) {
    const Chunk chunk(from, c);
    for (int64_t i = 0; i < kSide; ++i) {
      _mm512_store_si512(to + c * kTile + i * kInner, chunk.row(first + i));
    }
  }
}

inline void lay_all_rows(const Rows& from, const Counts& counts, Bf16* to) {
  for (int64_t side = 0; side < 2 * counts.blocks; ++side) {
    lay_rows(from, side * kSide, counts.chunks, to + side * counts.chunks * kTile);
  }
}

inline void lay_columns(const Rows& from, const Counts& counts, Bf16* to) {
  lay_all_rows(from, counts, to);
  for (int64_t tile = 0; tile < 2 * counts.blocks * counts.chunks; ++tile) {
    turn_tile(to + tile * kTile, to + tile * kTile);
  }
}

inline void lay_pairs(const Rows& from, const Counts& counts, Bf16* to) {
  // Puts halves of rows side by side for the interleaving within 128-bit lanes that follows.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t block = 0; block < counts.blocks; ++block) {
    for (int64_t c = 0; c < counts.chunks; ++c, to += 2 * kTile) {
      const Chunk chunk(from, c);
      for (int64_t i = 0; i < kSide; ++i) {
        const int64_t row = block * kInner + 2 * i;
        const __m512i even = _mm512_permutexvar_epi64(order, chunk.row(row));
        const __m512i odd = _mm512_permutexvar_epi64(order, chunk.row(row + 1));
        _mm512_store_si512(to + i * kInner, _mm512_unpacklo_epi16(even, odd));
        _mm512_store_si512(to + kTile + i * kInner, _mm512_unpackhi_epi16(even, odd));
      }
    }
  }
}

// Queries or keys, rotated if there are cosines.
inline Rows rotary_embedded(const float* cosines, const Rows& from, Bf16* room) {
  if (cosines == nullptr) return from;
  for (int64_t i = 0; i < from.rows; ++i) {
    rotate_row<false>(from.row(i), cosines + i * from.columns, from.columns,
                      room + i * from.columns);
  }
  return {room, from.rows, from.columns, from.columns};
}

inline __m512i both(const F32& low, const F32& high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
}

// 2^x with an error below 2^-18 for x <= 128; 0 in lanes that are not in the mask.
inline F32 power_of_2(F32 x, __mmask16 mask) {
  const F32 f{_mm512_reduce_ps(x.v, 9)};  // x - floor(x)
  F32 p = fma(fill(1.353416791e-2F), f, fill(5.201146062e-2F));
  p = fma(p, f, fill(2.414427569e-1F));
  p = fma(p, f, fill(6.930038345e-1F));
  p = fma(p, f, fill(1.000002593F));
  return {_mm512_maskz_scalef_ps(mask, p.v, x.v)};  // Scales by 2^floor(x).
}

// A reduction of each of 16 vectors, as the lanes of one.
template <typename Function>
inline F32 fold(const F32 (&rows)[kLanes], const Function& function) {
  const auto joined = [&](__m512 a, __m512 b) { return function(F32{a}, F32{b}).v; };
  __m512 quarters[4];
  for (int64_t i = 0; i < 4; ++i) {
    const __m512 a = rows[i].v, b = rows[i + 4].v, c = rows[i + 8].v, d = rows[i + 12].v;
    const __m512 ab = joined(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const __m512 cd = joined(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    quarters[i] = joined(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  }
  const auto interleaved = [&](__m512 a, __m512 b) {
    return joined(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  };
  const __m512 low = interleaved(quarters[0], quarters[1]),
               high = interleaved(quarters[2], quarters[3]);
  return {joined(_mm512_shuffle_ps(low, high, 0x44), _mm512_shuffle_ps(low, high, 0xee))};
}

// Writes rows of fp32 as bf16, rotated back if there are cosines.
inline void write_rows(const float* from, int64_t stride, const float* cosines,
                       const Matrix<Bf16>& to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    const float* row = from + i * stride;
    Bf16* out = to.row(i);
    if (cosines != nullptr) {
      rotate_row<true>(row, cosines + i * to.columns, to.columns, out);
      continue;
    }
    for (int64_t j = 0; j < to.columns; j += kInner) {
      const auto mask = static_cast<__mmask32>((uint64_t{1} << least(kInner, to.columns - j)) - 1);
      _mm512_mask_storeu_epi16(out + j, mask, both(load(row + j), load(row + j + kLanes)));
    }
  }
}

inline Matrix<Bf16> rows_from(const Matrix<Bf16>& all, int64_t first, int64_t most_rows) {
  return {all.row(first), least(most_rows, all.rows - first), all.columns, all.stride};
}

}  // namespace
}  // namespace gallop::kernel
