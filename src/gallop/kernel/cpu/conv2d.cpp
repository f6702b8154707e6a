#include "gallop/kernel/cpu/conv2d.h"

#include "gallop/kernel/cpu/pairs.h"
#include "gallop/kernel/cpu/simd.h"
#include "gallop/kernel/cpu/tiles.h"

namespace gallop::kernel {
namespace {

#if defined(__AMX_BF16__)

// Tiles 0 to 3 hold sums, 4 pixels and 5 weights of full steps, 6 and 7 those of half ones.
constexpr TileSetup kSetup{.row_bytes = {64, 64, 64, 64, 64, 64, 32, 64},
                           .rows = {16, 16, 16, 16, 16, 16, 16, 8}};
static_assert(sizeof(TileSetup) == Conv2dKernels::kStateBytes);

void begin(void* state) { begin_tiles(kSetup, state); }
void end(const void* state) { end_tiles(state); }

// What a step of run() adds to all sums. The instructions take their tiles' numbers as they stand
// in the source, hence no function.
#define GALLOP_ADD_STEP(pixel_tile, weight_tile)         \
  _tile_loadd(weight_tile, weights + steps->weight, 64); \
  _tile_loadd(pixel_tile, a + steps->offset, bytes);     \
  _tile_dpbf16ps(0, pixel_tile, weight_tile);            \
  _tile_loadd(pixel_tile, b + steps->offset, bytes);     \
  _tile_dpbf16ps(1, pixel_tile, weight_tile);            \
  _tile_loadd(pixel_tile, c + steps->offset, bytes);     \
  _tile_dpbf16ps(2, pixel_tile, weight_tile);            \
  _tile_loadd(pixel_tile, d + steps->offset, bytes);     \
  _tile_dpbf16ps(3, pixel_tile, weight_tile)

void run(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
         const Bf16* weights, const float* bias) {
  const auto bytes = static_cast<std::size_t>(block.from_stride) * sizeof(Bf16);
  const Bf16 *const a = block.from[0], *const b = block.from[1];
  const Bf16 *const c = block.from[2], *const d = block.from[3];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const Conv2dStep* const last = steps + full;
  for (; steps < last; ++steps) {
    GALLOP_ADD_STEP(4, 5);
  }
  for (; steps < last + half; ++steps) {
    GALLOP_ADD_STEP(6, 7);
  }
  alignas(64) float sums[Conv2dBlock::kTiles][Conv2dBlock::kPixels * kLanes];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  for (int64_t tile = 0; tile < Conv2dBlock::kTiles; ++tile) {
    Bf16* to = block.to[tile];
    for (int64_t i = 0; i < Conv2dBlock::kPixels; ++i, to += block.to_stride) {
      store(to, load(sums[tile] + i * kLanes) + load(bias));
    }
  }
}

#undef GALLOP_ADD_STEP

#else

void begin(void*) {}
void end(const void*) {}

#if defined(__AVX512BF16__)

void run(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
         const Bf16* weights, const float* bias) {
  for (int64_t tile = 0; tile < Conv2dBlock::kTiles; ++tile) {
    PairSums<Conv2dBlock::kPixels, 1> sums;
    for (int64_t s = 0; s < full + half; ++s) {
      const int64_t inner = s < full ? Conv2dKernels::kInner : Conv2dKernels::kHalf;
      sums.add(block.from[tile] + steps[s].offset, block.from_stride,
               {weights + steps[s].weight, 2 * kLanes, 0}, inner / 2);
    }
    for (int64_t i = 0; i < Conv2dBlock::kPixels; ++i) {
      store(block.to[tile] + i * block.to_stride, F32{sums.at[i][0]} + load(bias));
    }
  }
}

#else

void run(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
         const Bf16* weights, const float* bias) {
  for (int64_t tile = 0; tile < Conv2dBlock::kTiles; ++tile) {
    for (int64_t i = 0; i < Conv2dBlock::kPixels; ++i) {
      F32 even = fill(0), odd = fill(0);
      for (int64_t s = 0; s < full + half; ++s) {
        const Bf16* const from = block.from[tile] + i * block.from_stride + steps[s].offset;
        const int64_t inner = s < full ? Conv2dKernels::kInner : Conv2dKernels::kHalf;
        for (int64_t k = 0; k < inner; k += 2) {
          F32 first = fill(0), second = fill(0);
          load_interleaved(weights + steps[s].weight + k * kLanes, first, second);
          even = fma(fill(as_fp32(from[k])), first, even);
          odd = fma(fill(as_fp32(from[k + 1])), second, odd);
        }
      }
      store(block.to[tile] + i * block.to_stride, (even + odd) + load(bias));
    }
  }
}

#endif
#endif

}  // namespace

template <>
Conv2dKernels make_kernels<Conv2dKernels, kIsa>() {
  return {.begin = begin, .end = end, .run = run};
}

}  // namespace gallop::kernel
