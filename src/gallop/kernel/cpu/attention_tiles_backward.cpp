#include "gallop/kernel/cpu/attention_tiles.h"
#include "gallop/kernel/cpu/simd.h"

#if defined(__AVX512BF16__)
#include "gallop/kernel/cpu/head_layout.h"
#endif

namespace gallop::kernel {

#if defined(__AVX512BF16__)

namespace {

// Blocks of 32 keys whose part of the queries' gradients is summed.
constexpr int64_t kPanel = 4;

// Scores and their gradients are made transposed, 32 keys by 32 queries at a time.

struct Backward {
  Backward(const Counts& counts, Room& room)
      : query_room(room.take<Bf16>(counts.numbers())),
        key_room(room.take<Bf16>(counts.numbers())),
        query_columns(room.take<Bf16>(counts.numbers())),
        query_pairs(room.take<Bf16>(counts.numbers())),
        key_rows(room.take<Bf16>(counts.numbers())),
        key_transposed(room.take<Bf16>(counts.numbers())),
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
  Bf16 *query_columns, *query_pairs, *key_rows, *key_transposed, *value_rows, *dy_columns,
      *dy_pairs;
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
  Bf16* dscore_pairs;  // Two tiles of pairs of keys, with queries in the order of
                       // interleaved_order().
};

// Which query column i of tile `tile` of the interleaved pairs belongs to.
constexpr int64_t interleaved_order(int64_t tile, int64_t i) {
  return i / 4 * 8 + tile * 4 + i % 4;
}

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
    F32 low{}, high{};
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
      multiply(
          2, 2,
          {work_.key_transposed + 2 * (first * counts_.chunks + c) * kTile, kTile, 2 * tiles()},
          {work_.dscore_pairs + 2 * queries * kTile, kTile, 2 * counts_.blocks * kTile}, steps,
          in_pieces(sums + c * 2 * kTile, 2 * kSums), first > 0);
    }
    if (last) write_queries(queries, sums);
  }

  void write_queries(int64_t queries, const float* sums) const {
    const int64_t width = columns();
    F32 block[kLanes];
    for (int64_t tile = 0; tile < int64_t{4} * counts_.chunks; ++tile) {
      transpose_to(sums + tile * kSums, 64, block);
      for (int64_t i = 0; i < kSide; ++i) {
        store(work_.sums + interleaved_order(tile % 2, i) * width + tile / 2 * kSide, block[i]);
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
  const Rows query = rotary_embedded(options.cosines, parts.query, work.query_room);
  const Rows key = rotary_embedded(options.cosines, parts.key, work.key_room);
  lay_columns(query, counts, work.query_columns);
  lay_pairs(query, counts, work.query_pairs);
  lay_all_rows(key, counts, work.key_rows);
  lay_pairs(key, counts, work.key_transposed);
  for (int64_t tile = 0; tile < 2 * counts.blocks * counts.chunks; ++tile) {
    turn_tile(work.key_transposed + tile * kTile, work.key_transposed + tile * kTile);
  }
  lay_all_rows(parts.value, counts, work.value_rows);
  lay_columns(dy, counts, work.dy_columns);
  lay_pairs(dy, counts, work.dy_pairs);
  lay_queries(options, counts, y, dy, log_sums, work);
  Fetcher fetcher(soon, 2 * squares_of(options, counts));
  BackwardHead(options, counts, work, gradients, fetcher).run();
}

int64_t scratch_bytes(const HeadOptions& options) {
  Room room{nullptr};
  const Backward work(Counts(options), room);
  return room.next - static_cast<char*>(nullptr);
}

}  // namespace

template <>
AttentionBackwardTiles make_kernels<AttentionBackwardTiles, kIsa>() {
  return {.scratch_bytes = scratch_bytes, .run = backward};
}

#else

template <>
AttentionBackwardTiles make_kernels<AttentionBackwardTiles, kIsa>() {
  return {};
}

#endif

}  // namespace gallop::kernel
