#pragma once

// Tiles of a head for attention_tiles_forward.cpp and attention_tiles_backward.cpp, on machines
// that support them.

#include "gallop/kernel/cpu/attention_tiles.h"
#include "gallop/kernel/cpu/integers.h"
#include "gallop/kernel/cpu/pairs.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// A tile has 16 rows of 32 elements in bf16 or of 16 in fp32, contiguous, 1 KB. The tiles of a
// matrix [tokens, width] have these forms, numbered along the width first:
//   rows     its elements as they are, the left operand of GEMMs over the width
//   columns  the 32-bit pairs of a tile of rows transposed, their right operand
//   pairs    rows 2i and 2i + 1 interleaved, the right operand of GEMMs over tokens
//   turned   the 32-bit pairs of a tile of pairs transposed, their left operand: rows are columns
inline constexpr int64_t kSide = 16, kInner = 32;
inline constexpr int64_t kTile = kSide * kInner, kSums = kSide * kSide;  // Elements of a tile.
inline constexpr float kLog2E = 1.44269504F;

using Rows = Matrix<const Bf16>;

// Numbers of tiles of a head.
struct Counts {
  explicit Counts(const HeadOptions& options)
      : sides(parts_of(options.tokens, kSide)),
        blocks(parts_of(options.tokens, kInner)),
        chunks(parts_of(options.width, kInner)) {}
  int64_t sides;   // Tiles of 16 tokens.
  int64_t blocks;  // Blocks of 32 tokens.
  int64_t chunks;  // Chunks of 32 columns.

  int64_t numbers() const { return 2 * blocks * chunks * kTile; }
};

// Number of blocks of 32 queries and 32 keys of which some attend to others.
inline int64_t squares_of(const HeadOptions& options, const Counts& counts) {
  return options.causal ? counts.blocks * (counts.blocks + 1) / 2 : counts.blocks * counts.blocks;
}

// Allocates memory in parts that begin at cache lines; from null it only counts.
struct Room {
  char* next;

  template <typename Number>
  Number* take(int64_t count) {
    auto* const at = reinterpret_cast<Number*>(next);
    next += (count * static_cast<int64_t>(sizeof(Number)) + 63) / 64 * 64;
    return at;
  }
};

// Prefetches memory that is read soon, a few lines at a time, so that GEMMs do not wait for it.
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

// GEMMs of tiles.

// Tile (part, step) of one operand: `step` counts along the reduced dimension.
struct Tiles {
  const Bf16* data;
  int64_t part, step;
};
// The destination of 2 x 2 tiles of sums: strides between tiles, and between rows, in elements.
struct Sums {
  float* data;
  int64_t down, right, stride;
};
constexpr Sums in_pieces(float* data, int64_t down) { return {data, down, kSums, kSide}; }

#if defined(__AMX_BF16__)

// Compiler barrier: the compiler does not know what these instructions read and write.
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

#else

template <int kDown, int kRight>
inline void multiply(const Tiles& a, const Tiles& b, int64_t steps, const Sums& c, bool add) {
  constexpr int64_t kRows = kRight > 1 ? 8 : kSide;
  for (int64_t down = 0; down < kDown; ++down) {
    for (int64_t row = 0; row < kSide; row += kRows) {
      PairSums<kRows, kRight> sums;
      for (int64_t step = 0; step < steps; ++step) {
        sums.add(a.data + down * a.part + step * a.step + row * kInner, kInner,
                 {b.data + step * b.step, kInner, b.part}, kInner / 2);
      }
      sums.put(c.data + down * c.down + row * c.stride, c.stride, c.right, add);
    }
  }
}

#endif

// Multiplies with one or two tiles in each direction, `down` and `right`.
inline void multiply(int64_t down, int64_t right, const Tiles& a, const Tiles& b, int64_t steps,
                     const Sums& c, bool add = false) {
  if (down > 1) {
    return right > 1 ? multiply<2, 2>(a, b, steps, c, add) : multiply<2, 1>(a, b, steps, c, add);
  }
  return right > 1 ? multiply<1, 2>(a, b, steps, c, add) : multiply<1, 1>(a, b, steps, c, add);
}

}  // namespace
}  // namespace gallop::kernel
