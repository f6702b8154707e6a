#include "gallop/kernel/cpu/attention_tiles.h"

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/rotary.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {

#if defined(__AMX_BF16__)

namespace {

// A tile has 16 rows of 32 numbers in bf16 or of 16 in fp32, and lies in one piece, 1 KB. Of a
// matrix [tokens, width] there are, numbered along the width first:
//   rows     its numbers as they are, the left side of products over the width
//   columns  the 32-bit pairs of a tile of rows transposed, their right side
//   pairs    rows 2i and 2i + 1 woven into one, the right side of products over tokens
//   turned   the 32-bit pairs of a tile of pairs transposed, their left side: rows are columns
constexpr int64_t kSide = 16, kInner = 32;
constexpr int64_t kTile = kSide * kInner, kSums = kSide * kSide;  // Numbers of a tile.
constexpr int64_t kPanel = 4;  // Blocks of 32 keys whose part of the queries' gradients is summed.
constexpr float kLog2E = 1.44269504F;

using Rows = Matrix<const Bf16>;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
inline int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// How many tiles a head has.
struct Counts {
  explicit Counts(const HeadOptions& options)
      : sides(parts_of(options.tokens, kSide)),
        blocks(parts_of(options.tokens, kInner)),
        chunks(parts_of(options.width, kInner)) {}
  int64_t sides;   // Of 16 tokens.
  int64_t blocks;  // Of 32 tokens.
  int64_t chunks;  // Of 32 columns.

  int64_t numbers() const { return 2 * blocks * chunks * kTile; }
};

// Of 32 queries and 32 keys, as far as they see each other.
inline int64_t squares_of(const HeadOptions& options, const Counts& counts) {
  return options.causal ? counts.blocks * (counts.blocks + 1) / 2 : counts.blocks * counts.blocks;
}

// Hands out memory in parts that begin at cache lines; from null it counts.
struct Room {
  char* next;

  template <typename Number>
  Number* take(int64_t count) {
    auto* const at = reinterpret_cast<Number*>(next);
    next += (count * static_cast<int64_t>(sizeof(Number)) + 63) / 64 * 64;
    return at;
  }
};

// Fetches what is read soon, some lines at a time, so that products do not wait for it.
class Fetcher {
 public:
  Fetcher(const ReadSoon& soon, int64_t calls) : soon_(soon) {
    for (const int64_t lines : soon.lines) lines_a_call_ += lines;
    lines_a_call_ = parts_of(lines_a_call_, calls);
  }
  void fetch() {
    for (int64_t left = lines_a_call_; part_ < ReadSoon::kParts; ++part_, line_ = 0) {
      for (; line_ < soon_.lines[part_]; ++line_, --left) {
        if (left == 0) return;
        _mm_prefetch(soon_.parts[part_] + line_ * ReadSoon::kLine, _MM_HINT_T1);
      }
    }
  }

 private:
  const ReadSoon& soon_;
  int64_t lines_a_call_ = 0, part_ = 0, line_ = 0;
};

// Products of tiles.

// Tile (part, step) of one side: step counts along what is summed over.
struct Tiles {
  const Bf16* data;
  int64_t part, step;
};
// Where 2 x 2 tiles of sums go: steps from one to the next, and between rows, in numbers.
struct Sums {
  float* data;
  int64_t down, right, stride;
};
constexpr Sums in_pieces(float* data, int64_t down) { return {data, down, kSums, kSide}; }

// The compiler does not know what these instructions read and write.
inline void fence() { asm volatile("" ::: "memory"); }

template <int kDown, int kRight>
inline void multiply(const Tiles& a, const Tiles& b, int64_t steps, const Sums& c, bool add) {
  constexpr std::size_t kBytes = 64;
  const auto c_bytes = static_cast<std::size_t>(c.stride) * sizeof(float);
  fence();
  if (add) {
    _tile_loadd(0, c.data, c_bytes);
    if constexpr (kRight > 1) _tile_loadd(1, c.data + c.right, c_bytes);
    if constexpr (kDown > 1) _tile_loadd(2, c.data + c.down, c_bytes);
    if constexpr (kDown > 1 && kRight > 1) _tile_loadd(3, c.data + c.down + c.right, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16 *left = a.data, *right = b.data;
  for (int64_t step = 0; step < steps; ++step, left += a.step, right += b.step) {
    _tile_loadd(4, left, kBytes);
    _tile_loadd(6, right, kBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRight > 1) {
      _tile_loadd(7, right + b.part, kBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kDown > 1) {
      _tile_loadd(5, left + a.part, kBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kRight > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c.data, c_bytes);
  if constexpr (kRight > 1) _tile_stored(1, c.data + c.right, c_bytes);
  if constexpr (kDown > 1) _tile_stored(2, c.data + c.down, c_bytes);
  if constexpr (kDown > 1 && kRight > 1) _tile_stored(3, c.data + c.down + c.right, c_bytes);
  fence();
}

// One or two tiles down and right.
inline void multiply(int64_t down, int64_t right, const Tiles& a, const Tiles& b, int64_t steps,
                     const Sums& c, bool add = false) {
  if (down > 1) {
    return right > 1 ? multiply<2, 2>(a, b, steps, c, add) : multiply<2, 1>(a, b, steps, c, add);
  }
  return right > 1 ? multiply<1, 2>(a, b, steps, c, add) : multiply<1, 1>(a, b, steps, c, add);
}

// Layouts.

// Columns [32 c, 32 c + 32) of a matrix, zeros beyond it.
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

// 16 x 16 numbers of 32 bits. The transposed of four columns is put together from quarters of rows
// as they are loaded, which costs fewer shuffles than to turn whole rows.
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

// Tiles of rows: 16 of them from row `first` on.
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
  // Halves of rows side by side, for what then weaves within each 128 bits.
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

// Queries or keys as they are, or turned by their angles.
inline Rows turned_by(const float* cosines, const Rows& from, Bf16* room) {
  if (cosines == nullptr) return from;
  for (int64_t i = 0; i < from.rows; ++i) {
    rotate_row<false>(from.row(i), cosines + i * from.columns, from.columns,
                      room + i * from.columns);
  }
  return {room, from.rows, from.columns, from.columns};
}

// Arithmetic.

inline __m512i both(const F32& low, const F32& high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
}

// 2^x within 2^-18 for x <= 128; 0 for lanes that the mask leaves out.
inline F32 power_of_2(F32 x, __mmask16 mask) {
  const F32 f{_mm512_reduce_ps(x.v, 9)};  // x - floor(x)
  F32 p = fma(fill(1.353416791e-2F), f, fill(5.201146062e-2F));
  p = fma(p, f, fill(2.414427569e-1F));
  p = fma(p, f, fill(6.930038345e-1F));
  p = fma(p, f, fill(1.000002593F));
  return {_mm512_maskz_scalef_ps(mask, p.v, x.v)};  // By floor(x).
}

// One number of each of 16 vectors.
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
  const auto woven = [&](__m512 a, __m512 b) {
    return joined(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  };
  const __m512 low = woven(quarters[0], quarters[1]), high = woven(quarters[2], quarters[3]);
  return {joined(_mm512_shuffle_ps(low, high, 0x44), _mm512_shuffle_ps(low, high, 0xee))};
}

// Rows of fp32 to bf16, turned back where there are cosines.
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

// Forward: 16 queries at a time are rows of scores, keys their columns.

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

// Of 16 queries: weights of one more than `visible.whole` blocks of keys, and what their products
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
  const Rows query = turned_by(options.cosines, parts.query, work.query_room);
  lay_columns(turned_by(options.cosines, parts.key, work.key_room), counts, work.key_columns);
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

// Backward: scores and their gradients are made transposed, 32 keys by 32 queries at a time.

struct Backward {
  Backward(const Counts& counts, Room& room)
      : query_room(room.take<Bf16>(counts.numbers())),
        key_room(room.take<Bf16>(counts.numbers())),
        query_columns(room.take<Bf16>(counts.numbers())),
        query_pairs(room.take<Bf16>(counts.numbers())),
        key_rows(room.take<Bf16>(counts.numbers())),
        key_turned(room.take<Bf16>(counts.numbers())),
        value_rows(room.take<Bf16>(counts.numbers())),
        dy_columns(room.take<Bf16>(counts.numbers())),
        dy_pairs(room.take<Bf16>(counts.numbers())),
        weights(room.take<Bf16>(2 * counts.blocks * kTile)),
        dscores(room.take<Bf16>(2 * counts.blocks * kTile)),
        dscore_pairs(room.take<Bf16>(2 * kPanel * counts.blocks * kTile)),
        scores(room.take<float>(4 * kSums)),
        dweights(room.take<float>(4 * kSums)),
        sums(room.take<float>(2 * counts.chunks * kTile)),
        dquery(room.take<float>(counts.numbers())),
        logs(room.take<float>(counts.blocks * kInner)),
        dots(room.take<float>(counts.blocks * kInner)) {}
  Bf16 *query_room, *key_room;
  Bf16 *query_columns, *query_pairs, *key_rows, *key_turned, *value_rows, *dy_columns, *dy_pairs;
  Bf16 *weights, *dscores, *dscore_pairs;
  float *scores, *dweights, *sums, *dquery, *logs, *dots;
};

// What the scores and dweights of a query are taken with: the logarithm (base 2) of its sum, and
// scale * dy y. 0 beyond the last query: its weights are then finite, and meet zeros.
inline void lay_queries(const HeadOptions& options, const Counts& counts, const Rows& y,
                        const Rows& dy, const float* log_sums, const Backward& work) {
  for (int64_t first = 0; first < counts.blocks * kInner; first += kSide) {
    const int64_t left = most(0, least(kSide, options.tokens - first));
    store(work.logs + first, load(log_sums + (left > 0 ? first : 0), left) * fill(kLog2E));
    F32 dots[kLanes];
    for (F32& dot : dots) dot = fill(0);
    for (int64_t c = 0; c < counts.chunks; ++c) {
      const Chunk a(y, c), b(dy, c);
      for (int64_t i = 0; i < left; ++i) {
        dots[i] = {_mm512_dpbf16_ps(dots[i].v, reinterpret_cast<__m512bh>(a.row(first + i)),
                                    reinterpret_cast<__m512bh>(b.row(first + i)))};
      }
    }
    const F32 dot = fold(dots, [](F32 p, F32 q) { return p + q; });
    store(work.dots + first, dot * fill(options.scale));
  }
}

// One block of 32 queries and one of keys.
struct Square {
  const float *scores, *dweights;  // Two by two tiles each.
  const float *logs, *dots;
  Bf16* weights;  // Two tiles: keys are rows, the second one `down` numbers further.
  Bf16* dscores;
  int64_t down;
  Bf16* dscore_pairs;  // Two tiles of pairs of keys, with queries in the order of weave_order().
};

// Which query column i of tile `tile` of the woven pairs belongs to.
constexpr int64_t weave_order(int64_t tile, int64_t i) { return i / 4 * 8 + tile * 4 + i % 4; }

// Weights and gradients of scores of 16 keys. `masks` if kMasked: the queries that see each of
// them.
template <bool kMasked>
inline void weigh(const Square& s, int64_t side, float scale, const uint32_t* masks) {
  const F32 log0 = load(s.logs), log1 = load(s.logs + kLanes);
  const F32 dot0 = load(s.dots), dot1 = load(s.dots + kLanes);
  const F32 factor = fill(scale * kLog2E), scales = fill(scale);
  const float* scores = s.scores + 2 * side * kSums;
  const float* dweights = s.dweights + 2 * side * kSums;
  const auto half = [&](int64_t at, const F32& log, const F32& dot, __mmask16 mask,
                        F32& weight) -> F32 {
    weight = power_of_2(F32{_mm512_fmsub_ps(load(scores + at).v, factor.v, log.v)}, mask);
    // Masked as well: what was not computed may be no number.
    const __m512 rest = _mm512_fmsub_ps(load(dweights + at).v, scales.v, dot.v);
    return {_mm512_maskz_mul_ps(mask, weight.v, rest)};
  };
  const auto row = [&](int64_t i) -> __m512i {
    const uint32_t mask = kMasked ? masks[i] : 0xffffffff;
    F32 low, high;
    const F32 dlow = half(i * kLanes, log0, dot0, static_cast<__mmask16>(mask), low);
    const F32 dhigh =
        half(kSums + i * kLanes, log1, dot1, static_cast<__mmask16>(mask >> kSide), high);
    _mm512_store_si512(s.weights + side * s.down + i * kInner, both(low, high));
    const __m512i dscores = both(dlow, dhigh);
    _mm512_store_si512(s.dscores + side * s.down + i * kInner, dscores);
    return dscores;
  };
  Bf16* pairs = s.dscore_pairs + side * kTile / 2;
#pragma GCC unroll 4
  for (int64_t i = 0; i < kSide; i += 2, pairs += kInner) {
    const __m512i even = row(i), odd = row(i + 1);
    _mm512_store_si512(pairs, _mm512_unpacklo_epi16(even, odd));
    _mm512_store_si512(pairs + kTile, _mm512_unpackhi_epi16(even, odd));
  }
}

class BackwardHead {
 public:
  BackwardHead(const HeadOptions& options, const Counts& counts, const Backward& work,
               const HeadParts<Bf16>& gradients, Fetcher& fetcher)
      : options_(options), counts_(counts), work_(work), gradients_(gradients), fetcher_(fetcher) {}

  void run() const {
    for (int64_t first = 0; first < counts_.blocks; first += kPanel) {
      const int64_t end = least(first + kPanel, counts_.blocks);
      for (int64_t keys = first; keys < end; ++keys) add_keys(keys, keys - first);
      for (int64_t queries = options_.causal ? first : 0; queries < counts_.blocks; ++queries) {
        add_queries(queries, first, end);
      }
    }
  }

 private:
  int64_t sides_of(int64_t block) const { return least(2, counts_.sides - 2 * block); }
  int64_t tiles() const { return counts_.chunks * kTile; }
  int64_t columns() const { return counts_.chunks * kInner; }

  // Gradients of keys and values of a block.
  void add_keys(int64_t keys, int64_t in_panel) const {
    const int64_t first = options_.causal ? keys : 0, sides = sides_of(keys);
    for (int64_t queries = first; queries < counts_.blocks; ++queries) {
      const int64_t at = 2 * keys * tiles(), right = sides_of(queries);
      const Tiles query{work_.query_columns + 2 * queries * tiles(), tiles(), kTile};
      const Tiles dy{work_.dy_columns + 2 * queries * tiles(), tiles(), kTile};
      multiply(sides, right, {work_.key_rows + at, tiles(), kTile}, query, counts_.chunks,
               in_pieces(work_.scores, 2 * kSums));
      multiply(sides, right, {work_.value_rows + at, tiles(), kTile}, dy, counts_.chunks,
               in_pieces(work_.dweights, 2 * kSums));
      weigh_square(keys, queries, in_panel);
    }
    const int64_t steps = counts_.blocks - first;
    write_gradient(work_.weights + first * kTile, work_.dy_pairs + 2 * first * tiles(), steps,
                   nullptr, rows_from(gradients_.value, keys * kInner, kInner));
    write_gradient(work_.dscores + first * kTile, work_.query_pairs + 2 * first * tiles(), steps,
                   cosines_of(keys), rows_from(gradients_.key, keys * kInner, kInner));
  }

  void weigh_square(int64_t keys, int64_t queries, int64_t in_panel) const {
    const Square square{
        .scores = work_.scores,
        .dweights = work_.dweights,
        .logs = work_.logs + queries * kInner,
        .dots = work_.dots + queries * kInner,
        .weights = work_.weights + queries * kTile,
        .dscores = work_.dscores + queries * kTile,
        .down = counts_.blocks * kTile,
        .dscore_pairs = work_.dscore_pairs + 2 * (in_panel * counts_.blocks + queries) * kTile};
    const int64_t left = options_.tokens - keys * kInner;
    const bool diagonal = options_.causal && keys == queries;
    for (int64_t side = 0; side < 2; ++side) {
      fetcher_.fetch();
      if (!diagonal && left >= (side + 1) * kSide && sides_of(queries) > 1) {
        weigh<false>(square, side, options_.scale, nullptr);
        continue;
      }
      uint32_t masks[kSide];
      for (int64_t i = 0; i < kSide; ++i) {
        const int64_t key = side * kSide + i;
        const uint32_t seeing = diagonal ? 0xffffffffU << key : 0xffffffffU;
        masks[i] = key < left ? seeing & (sides_of(queries) > 1 ? 0xffffffffU : 0xffffU) : 0;
      }
      weigh<true>(square, side, options_.scale, masks);
    }
  }

  void write_gradient(const Bf16* left, const Bf16* right, int64_t steps, const float* cosines,
                      const Matrix<Bf16>& to) const {
    const int64_t width = columns();
    for (int64_t c = 0; c < counts_.chunks; ++c) {
      multiply(to.rows > kSide ? 2 : 1, 2, {left, counts_.blocks * kTile, kTile},
               {right + 2 * c * kTile, kTile, 2 * tiles()}, steps,
               {work_.sums + c * kInner, kSide * width, kSide, width});
    }
    write_rows(work_.sums, width, cosines, to);
  }

  // Gradients of the queries of a block, as far as they come from the keys of blocks [first, end).
  void add_queries(int64_t queries, int64_t first, int64_t end) const {
    const bool last = options_.causal ? queries < end : end == counts_.blocks;
    const int64_t steps = (options_.causal ? least(end, queries + 1) : end) - first;
    float* sums = work_.dquery + 2 * queries * tiles();
    for (int64_t c = 0; c < counts_.chunks; ++c) {
      multiply(2, 2,
               {work_.key_turned + 2 * (first * counts_.chunks + c) * kTile, kTile, 2 * tiles()},
               {work_.dscore_pairs + 2 * queries * kTile, kTile, 2 * counts_.blocks * kTile}, steps,
               in_pieces(sums + c * 2 * kTile, 2 * kSums), first > 0);
    }
    if (last) write_queries(queries, sums);
  }

  void write_queries(int64_t queries, const float* sums) const {
    const int64_t width = columns();
    F32 block[kLanes];
    for (int64_t tile = 0; tile < 2 * 2 * counts_.chunks; ++tile) {
      transpose_to(sums + tile * kSums, 64, block);
      for (int64_t i = 0; i < kSide; ++i) {
        store(work_.sums + weave_order(tile % 2, i) * width + tile / 2 * kSide, block[i]);
      }
    }
    write_rows(work_.sums, width, cosines_of(queries),
               rows_from(gradients_.query, queries * kInner, kInner));
  }

  const float* cosines_of(int64_t block) const {
    return options_.cosines == nullptr ? nullptr
                                       : options_.cosines + block * kInner * options_.width;
  }

  const HeadOptions& options_;
  const Counts& counts_;
  const Backward& work_;
  const HeadParts<Bf16>& gradients_;
  Fetcher& fetcher_;
};

void backward(const HeadOptions& options, const HeadParts<const Bf16>& parts, const Rows& y,
              const Rows& dy, const float* log_sums, const HeadParts<Bf16>& gradients,
              const ReadSoon& soon, void* scratch) {
  const Counts counts(options);
  Room room{static_cast<char*>(scratch)};
  const Backward work(counts, room);
  const Rows query = turned_by(options.cosines, parts.query, work.query_room);
  const Rows key = turned_by(options.cosines, parts.key, work.key_room);
  lay_columns(query, counts, work.query_columns);
  lay_pairs(query, counts, work.query_pairs);
  lay_all_rows(key, counts, work.key_rows);
  lay_pairs(key, counts, work.key_turned);
  for (int64_t tile = 0; tile < 2 * counts.blocks * counts.chunks; ++tile) {
    turn_tile(work.key_turned + tile * kTile, work.key_turned + tile * kTile);
  }
  lay_all_rows(parts.value, counts, work.value_rows);
  lay_columns(dy, counts, work.dy_columns);
  lay_pairs(dy, counts, work.dy_pairs);
  lay_queries(options, counts, y, dy, log_sums, work);
  Fetcher fetcher(soon, 2 * squares_of(options, counts));
  BackwardHead(options, counts, work, gradients, fetcher).run();
}

int64_t forward_bytes(const HeadOptions& options) {
  Room room{nullptr};
  const Forward work(Counts(options), room);
  return room.next - static_cast<char*>(nullptr);
}

int64_t backward_bytes(const HeadOptions& options) {
  Room room{nullptr};
  const Backward work(Counts(options), room);
  return room.next - static_cast<char*>(nullptr);
}

}  // namespace

template <>
AttentionTileBodies make_bodies<AttentionTileBodies, kIsa>() {
  return {.forward_bytes = forward_bytes,
          .backward_bytes = backward_bytes,
          .forward = forward,
          .backward = backward};
}

#else

template <>
AttentionTileBodies make_bodies<AttentionTileBodies, kIsa>() {
  return {};
}

#endif

}  // namespace gallop::kernel
