#include "gallop/kernel/cpu/attention_tiles.h"
#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/simd.h"

#if defined(__AVX512BF16__)
#include "gallop/kernel/cpu/head_layout.h"
#endif

namespace gallop::kernel {

#if defined(__AVX512BF16__)

namespace {

// 16 queries at a time are rows of scores, keys their columns.

struct Forward {
  Forward(const Counts& counts, Room& room)
      : query_room(room.take<Bf16>(counts.numbers())),
        key_room(room.take<Bf16>(counts.numbers())),
        query_rows(room.take<Bf16>(2 * counts.chunks * kTile)),
        key_columns(room.take<Bf16>(counts.numbers())),
        value_pairs(room.take<Bf16>(counts.numbers())),
        weights(room.take<Bf16>(2 * counts.blocks * kTile)),
        scores(room.take<float>(4 * counts.blocks * kSums)),
        y(room.take<float>(2 * counts.chunks * kTile)) {}
  Bf16 *query_room, *key_room, *query_rows, *key_columns, *value_pairs, *weights;
  float *scores, *y;
};

// The keys that each of 16 queries sees: all of `whole` blocks of 32, and then of one more, row i
// those of the least significant bits of row_masks[i].
struct Visible {
  Visible(const HeadOptions& options, int64_t first_query) {
    const auto seen_by = [&](int64_t row) {
      return options.causal ? least(first_query + row + 1, options.tokens) : options.tokens;
    };
    whole = seen_by(0) / kInner;
    rest = seen_by(kSide - 1) - whole * kInner;
    for (int64_t i = 0; i < kSide; ++i) {
      masks[i] = static_cast<uint32_t>((uint64_t{1} << (seen_by(i) - whole * kInner)) - 1);
    }
  }
  int64_t whole, rest;
  uint32_t masks[kSide];
};

inline F32 tops_of(const float* scores, const Visible& visible) {
  F32 tops[kLanes];
  for (F32& top : tops) top = fill(-__builtin_inff());
  for (int64_t tile = 0; tile < 2 * visible.whole; ++tile, scores += kSums) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kSide; ++i) tops[i] = max(tops[i], load(scores + i * kLanes));
  }
  for (int64_t k = 0; k < visible.rest; k += kSide, scores += kSums) {
    for (int64_t i = 0; i < kSide; ++i) {
      const auto mask = static_cast<__mmask16>(visible.masks[i] >> k);
      tops[i] = {_mm512_mask_max_ps(tops[i].v, mask, tops[i].v, load(scores + i * kLanes).v)};
    }
  }
  return fold(tops, [](F32 a, F32 b) { return max(a, b); });
}

// weights = 2^(factor score - shift); gives the sums of the rows.
inline F32 weights_of(const float* scores, const Visible& visible, float factor,
                      const float* shifts, Bf16* weights) {
  F32 sums[kLanes];
  for (F32& total : sums) total = fill(0);
  const F32 factors = fill(factor);
  const auto weight = [&](const float* at, int64_t i, __mmask16 mask) {
    return power_of_2(F32{_mm512_fmsub_ps(load(at + i * kLanes).v, factors.v, fill(shifts[i]).v)},
                      mask);
  };
  for (int64_t block = 0; block < visible.whole; ++block) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kSide; ++i) {
      const F32 low = weight(scores, i, 0xffff), high = weight(scores + kSums, i, 0xffff);
      sums[i] = sums[i] + (low + high);
      _mm512_store_si512(weights + i * kInner, both(low, high));
    }
    scores += 2 * kSums;
    weights += kTile;
  }
  if (visible.rest > 0) {
    for (int64_t i = 0; i < kSide; ++i) {
      const uint32_t mask = visible.masks[i];
      const F32 low = weight(scores, i, static_cast<__mmask16>(mask));
      const F32 high = visible.rest > kSide
                           ? weight(scores + kSums, i, static_cast<__mmask16>(mask >> kSide))
                           : fill(0);
      sums[i] = sums[i] + (low + high);
      _mm512_store_si512(weights + i * kInner, both(low, high));
    }
  }
  return fold(sums, [](F32 a, F32 b) { return a + b; });
}

// For 16 queries: weights of one more than `visible.whole` blocks of keys, and what their products
// are to be multiplied by.
inline void softmax(const float* scores, const Visible& visible, float scale, Bf16* weights,
                    float* inverses, float* log_sums, int64_t queries) {
  alignas(64) float shifts[kLanes];
  const F32 top = tops_of(scores, visible);
  store(shifts, top * fill(scale * kLog2E));
  const F32 sum = weights_of(scores, visible, scale * kLog2E, shifts, weights);
  store(inverses, quotient(fill(1), sum));
  // The shift is what the scores were multiplied by, and log 2 of it.
  store(log_sums, fma(load(shifts), fill(0.693147181F), log(sum)), queries);
}

void forward(const HeadOptions& options, const HeadParts<const Bf16>& parts, const Matrix<Bf16>& y,
             float* log_sums, const ReadSoon& soon, void* scratch) {
  const Counts counts(options);
  Fetcher fetcher(soon, squares_of(options, counts));
  Room room{static_cast<char*>(scratch)};
  const Forward work(counts, room);
  const int64_t chunks = counts.chunks, width = chunks * kInner;
  const Rows query = rotary_embedded(options.cosines, parts.query, work.query_room);
  lay_columns(rotary_embedded(options.cosines, parts.key, work.key_room), counts, work.key_columns);
  lay_pairs(parts.value, counts, work.value_pairs);
  for (int64_t block = 0; block < counts.blocks; ++block) {
    const int64_t first = block * kInner, groups = least(2, counts.sides - 2 * block);
    const int64_t seen = options.causal ? block + 1 : counts.blocks;
    const int64_t scores_down = 2 * counts.blocks * kSums;
    for (int64_t group = 0; group < groups; ++group) {
      lay_rows(query, first + group * kSide, chunks, work.query_rows + group * chunks * kTile);
    }
    for (int64_t keys = 0; keys < seen; ++keys) {
      multiply(groups, least(2, counts.sides - 2 * keys), {work.query_rows, chunks * kTile, kTile},
               {work.key_columns + 2 * keys * chunks * kTile, chunks * kTile, kTile}, chunks,
               in_pieces(work.scores + 2 * keys * kSums, scores_down));
      fetcher.fetch();
    }
    alignas(64) float inverses[kInner];
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t at = first + group * kSide;
      softmax(work.scores + group * scores_down, Visible(options, at), options.scale,
              work.weights + group * counts.blocks * kTile, inverses + group * kSide, log_sums + at,
              least(kSide, options.tokens - at));
    }
    for (int64_t c = 0; c < chunks; ++c) {
      multiply(groups, 2, {work.weights, counts.blocks * kTile, kTile},
               {work.value_pairs + 2 * c * kTile, kTile, 2 * chunks * kTile}, seen,
               {work.y + c * kInner, kSide * width, kSide, width});
    }
    const Matrix<Bf16> to = rows_from(y, first, kInner);
    for (int64_t i = 0; i < to.rows; ++i) {
      float* row = work.y + i * width;
      const F32 factor = fill(inverses[i]);
      for (int64_t j = 0; j < width; j += kLanes) store(row + j, load(row + j) * factor);
    }
    write_rows(work.y, width, nullptr, to);
  }
}

int64_t scratch_bytes(const HeadOptions& options) {
  Room room{nullptr};
  const Forward work(Counts(options), room);
  return room.next - static_cast<char*>(nullptr);
}

}  // namespace

template <>
AttentionForwardTiles make_kernels<AttentionForwardTiles, kIsa>() {
  return {.scratch_bytes = scratch_bytes, .run = forward};
}

#else

template <>
AttentionForwardTiles make_kernels<AttentionForwardTiles, kIsa>() {
  return {};
}

#endif

}  // namespace gallop::kernel
