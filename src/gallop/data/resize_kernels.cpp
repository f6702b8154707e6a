#include "gallop/data/resize_kernels.h"

#include <cstring>

#include "gallop/data/resize.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gallop::data {

namespace {

constexpr int kRowShift = AxisWeights::kBits - kBetweenBits;
constexpr int kRowHalf = 1 << (kRowShift - 1);
constexpr int kColumnShift = AxisWeights::kBits + kBetweenBits;
constexpr int kColumnHalf = 1 << (kColumnShift - 1);

void blend_bytes(const uint8_t* const* rows, const int16_t* weights, int taps, int from, int to,
                 int16_t* out) {
  for (int x = from; x < to; ++x) {
    int sum = kRowHalf;
    for (int k = 0; k < taps; ++k) sum += weights[k] * rows[k][x];
    out[x] = static_cast<int16_t>(sum >> kRowShift);
  }
}

void blend_rows(const uint8_t* const* rows, const int16_t* weights, int taps, int count,
                int16_t* out) {
  blend_bytes(rows, weights, taps, 0, count, out);
}

void blend_columns(const int16_t* row, const int* begin, const int16_t* weights, int taps,
                   int outputs, int channels, uint8_t* out) {
  for (int x = 0; x < outputs; ++x, weights += taps) {
    for (int c = 0; c < channels; ++c) {
      int sum = kColumnHalf;
      for (int k = 0; k < taps; ++k) sum += weights[k] * row[(begin[x] + k) * channels + c];
      *out++ = static_cast<uint8_t>(sum >> kColumnShift);
    }
  }
}

#if defined(__x86_64__)

int weight_pair(const int16_t* weights) {
  int pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return pair;
}

// Processes 16 bytes of each row at a time. unpack and pack both work within 128-bit lanes, so that
// the order is preserved.
[[gnu::target("avx2")]] void blend_16_bytes(const uint8_t* const* rows, const int16_t* weights,
                                            int taps, int x, int16_t* out) {
  __m256i low = _mm256_set1_epi32(kRowHalf), high = low;
  for (int k = 0; k < taps; k += 2) {
    const __m256i pair = _mm256_set1_epi32(weight_pair(weights + k));
    const __m256i a =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + x)));
    const __m256i b =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k + 1] + x)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), pair));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), pair));
  }
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(out + x),
      _mm256_packs_epi32(_mm256_srai_epi32(low, kRowShift), _mm256_srai_epi32(high, kRowShift)));
}

[[gnu::target("avx2")]] void blend_rows_avx2(const uint8_t* const* rows, const int16_t* weights,
                                             int taps, int count, int16_t* out) {
  if (count < 16) return blend_bytes(rows, weights, taps, 0, count, out);
  for (int x = 0; x + 16 <= count; x += 16) blend_16_bytes(rows, weights, taps, x, out);
  if (count % 16 != 0) blend_16_bytes(rows, weights, taps, count - 16, out);
}

[[gnu::target("avx2")]] __m256i load_two(const int16_t* low, const int16_t* high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

[[gnu::target("avx2")]] __m256i repeat_two(int low, int high) {
  return _mm256_blend_epi32(_mm256_set1_epi32(low), _mm256_set1_epi32(high), 0xF0);
}

// Computes two outputs at a time, one in each half of the vectors. A half holds (r0 g0 b0 r1 g1 b1
// . .) of two pixels and is shuffled to (r0 r1 g0 g1 b0 b1 . .), which pmaddwd multiplies with (w0
// w1 w0 w1 ...).
[[gnu::target("avx2")]] void blend_columns_avx2(const int16_t* row, const int* begin,
                                                const int16_t* weights, int taps, int outputs,
                                                int channels, uint8_t* out) {
  if (channels != 3) return blend_columns(row, begin, weights, taps, outputs, channels, out);
  const __m256i side_by_side = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
  int x = 0;
  // A result is stored as four bytes, the fourth of which is overwritten by the next one, so the
  // last result is left to the plain loop.
  for (; x + 2 < outputs; x += 2, weights += ptrdiff_t{2} * taps, out += 6) {
    const int16_t* low = row + ptrdiff_t{3} * begin[x];
    const int16_t* high = row + ptrdiff_t{3} * begin[x + 1];
    __m256i sum = _mm256_set1_epi32(kColumnHalf);
    for (ptrdiff_t k = 0; k < taps; k += 2) {
      const __m256i pixels = _mm256_shuffle_epi8(load_two(low + 3 * k, high + 3 * k), side_by_side);
      const __m256i pair = repeat_two(weight_pair(weights + k), weight_pair(weights + taps + k));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, pair));
    }
    sum = _mm256_srai_epi32(sum, kColumnShift);
    sum = _mm256_packus_epi16(_mm256_packs_epi32(sum, sum), sum);
    const int first = _mm256_extract_epi32(sum, 0), second = _mm256_extract_epi32(sum, 4);
    std::memcpy(out, &first, 4);
    std::memcpy(out + 3, &second, 4);
  }
  blend_columns(row, begin + x, weights, taps, outputs - x, channels, out);
}

#endif

}  // namespace

ResizeKernels portable_resize_kernels() { return {blend_rows, blend_columns}; }

ResizeKernels best_resize_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return {blend_rows_avx2, blend_columns_avx2};
#endif
  return portable_resize_kernels();
}

}  // namespace gallop::data
