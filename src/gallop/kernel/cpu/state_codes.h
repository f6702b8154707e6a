#pragma once

// Conversion of 8-bit states to fp32 and back, 16 at a time; see state_map.h.

#include <cstdint>

#include "gallop/kernel/cpu/simd_ieee.h"
#include "gallop/kernel/state_map.h"

namespace gallop::kernel {
namespace {

// A table of up to 8 entries, and the entry that each lane selects.
struct Entries {
  float of[16];
};

#if defined(__AVX512F__)

struct Choice {
  __m512i v;
};
inline F32 entry(const Entries& table, Choice choice) {
  return {_mm512_permutexvar_ps(choice.v, _mm512_loadu_ps(table.of))};
}
inline F32 load_codes(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}
inline void store_codes(uint8_t* p, F32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(a.v)));
}

#elif defined(__AVX2__)

struct Choice {
  __m256i low, high;
};
/// The number of the first 7 entries that are below, per lane.
inline Choice count_below(F32 a, const Entries& limits) {
  Choice count{_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int i = 0; i < 7; ++i) {
    // A lane where it holds is -1.
    const Mask above = a > fill(limits.of[i]);
    count.low = _mm256_sub_epi32(count.low, _mm256_castps_si256(above.low));
    count.high = _mm256_sub_epi32(count.high, _mm256_castps_si256(above.high));
  }
  return count;
}
inline F32 entry(const Entries& table, Choice choice) {
  const __m256 all = _mm256_loadu_ps(table.of);
  return {_mm256_permutevar8x32_ps(all, choice.low), _mm256_permutevar8x32_ps(all, choice.high)};
}
inline F32 load_codes(const uint8_t* p) {
  const auto wide = [](const uint8_t* from) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  };
  return {wide(p), wide(p + 8)};
}
inline void store_codes(uint8_t* p, F32 a) {
  const __m256i words =
      _mm256_packus_epi32(_mm256_cvttps_epi32(a.low), _mm256_cvttps_epi32(a.high));
  const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packus_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1)));
}

#else

struct Choice {
  int32_t v[kLanes];
};
inline Choice count_below(const F32& a, const Entries& limits) {
  Choice count{};
  for (int i = 0; i < 7; ++i) {
    for (int64_t lane = 0; lane < kLanes; ++lane) count.v[lane] += a.v[lane] > limits.of[i];
  }
  return count;
}
inline F32 entry(const Entries& table, const Choice& choice) {
  return each([&](int64_t i) { return table.of[choice.v[i]]; });
}
inline F32 load_codes(const uint8_t* p) {
  return each([=](int64_t i) { return static_cast<float>(p[i]); });
}
inline void store_codes(uint8_t* p, const F32& a) {
  for (int64_t i = 0; i < kLanes; ++i) p[i] = static_cast<uint8_t>(a.v[i]);
}

#endif

/// Tables by decade, counted from 1; 0 has no slope.
struct StateTables {
  Entries slopes{}, offsets{};       // To decode.
  Entries ups{}, shifts{}, lasts{};  // To encode.
  Entries ranks{}, begins{};         // Where decades begin.
};

template <bool kSigned>
constexpr StateTables state_tables() {
  using Map = StateMap<kSigned>;
  StateTables t;
  for (int i = 0; i < Map::kDecades; ++i) {
    t.slopes.of[i + 1] = static_cast<float>(Map::slope(i));
    t.offsets.of[i + 1] = static_cast<float>(Map::offset(i));
    t.ups.of[i + 1] = static_cast<float>(Map::up(i));
    t.shifts.of[i + 1] = static_cast<float>(Map::shift(i));
    t.lasts.of[i + 1] = static_cast<float>(Map::first(i) + Map::cells(i) - 1);
    t.ranks.of[i] = static_cast<float>(Map::first(i) - 0.5);
    t.begins.of[i] = static_cast<float>(Map::begin(i));
  }
  return t;
}
template <bool kSigned>
inline constexpr StateTables kStateTables = state_tables<kSigned>();

#if defined(__AVX512F__)

/// For each octave from 2^-25 on, indexed by the lower bits of its exponent: the number of decades
/// that begin before it, and the begin of one within it.
struct Octaves {
  float begins[32];
  int32_t before[32];
};
template <bool kSigned>
constexpr Octaves octaves() {
  Octaves all{};
  double low = 0x1p-25;
  for (int exponent = 127 - 25; exponent < 128; ++exponent, low *= 2) {
    const int at = exponent % 32;
    all.begins[at] = 4;  // Above all sizes.
    for (int i = 0; i < StateMap<kSigned>::kDecades; ++i) {
      const double begin = StateMap<kSigned>::begin(i);
      if (begin < low) {
        all.before[at] = i + 1;
      } else if (begin < 2 * low) {
        all.begins[at] = static_cast<float>(begin);
      }
    }
  }
  return all;
}
template <bool kSigned>
inline constexpr Octaves kOctaves = octaves<kSigned>();

template <bool kSigned>
inline Choice decade_of_rank(F32 rank) {
  // Decades begin at powers of 2 of the rank, plus 1 without a sign.
  const F32 place = rank + fill(kSigned ? 0.5F : 1.5F);
  return {_mm512_sub_epi32(_mm512_srli_epi32(_mm512_castps_si512(place.v), 23),
                           _mm512_set1_epi32(kSigned ? 126 : 127))};
}
template <bool kSigned>
inline Choice decade_of_size(F32 size) {
  const Octaves& all = kOctaves<kSigned>;
  const __m512i octave = _mm512_srli_epi32(_mm512_castps_si512(max(size, fill(0x1p-25F)).v), 23);
  const F32 begin{_mm512_permutex2var_ps(_mm512_loadu_ps(all.begins), octave,
                                         _mm512_loadu_ps(all.begins + 16))};
  const __m512i before = _mm512_permutex2var_epi32(_mm512_loadu_si512(all.before), octave,
                                                   _mm512_loadu_si512(all.before + 16));
  return {_mm512_mask_add_epi32(before, (size > begin).v, before, _mm512_set1_epi32(1))};
}

#else

template <bool kSigned>
inline Choice decade_of_rank(const F32& rank) {
  return count_below(rank, kStateTables<kSigned>.ranks);
}
template <bool kSigned>
inline Choice decade_of_size(const F32& size) {
  return count_below(size, kStateTables<kSigned>.begins);
}

#endif

template <bool kSigned>
inline F32 decoded(const uint8_t* codes, F32 scale) {
  using Map = StateMap<kSigned>;
  constexpr auto kTop = static_cast<float>(Map::kTopRank);
  const StateTables& tables = kStateTables<kSigned>;
  const F32 place = load_codes(codes) - fill(static_cast<float>(Map::kZero));
  const F32 rank = kSigned ? without_sign(place) : place;
  const Choice decade = decade_of_rank<kSigned>(rank);
  const F32 inner = fma(rank, entry(tables.slopes, decade), entry(tables.offsets, decade));
  const F32 size = select(rank > fill(kTop - 0.5F), fill(1), inner);
  return scale * (kSigned ? with_sign_of(size, place) : size);
}

template <bool kSigned>
inline void encode(F32 a, F32 inverse_scale, uint8_t* codes) {
  using Map = StateMap<kSigned>;
  constexpr auto kTop = static_cast<float>(Map::kTopRank);
  constexpr auto kTopBegin = static_cast<float>(Map::top_begin());
  const StateTables& tables = kStateTables<kSigned>;
  const F32 share = a * inverse_scale, size = kSigned ? without_sign(share) : share;
  const Choice decade = decade_of_size<kSigned>(size);
  const F32 inner = fma(size, entry(tables.ups, decade), entry(tables.shifts, decade));
  F32 rank = select(size > fill(kTopBegin), fill(kTop), min(inner, entry(tables.lasts, decade)));
  if constexpr (kSigned) {
    rank = fill(static_cast<float>(Map::kZero)) + with_sign_of(round_to_zero(rank), share);
    rank = max(rank, fill(0));  // There is no rank -1.
  }
  store_codes(codes, rank);  // The conversion truncates.
}

}  // namespace
}  // namespace gallop::kernel
