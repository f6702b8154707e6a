#include "gallop/kernel/cpu/conv2d.h"

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

#if defined(__AMX_BF16__)

// Tiles 0 to 3 hold sums, 4 pixels and 5 weights of full steps, 6 and 7 those of half ones.
struct alignas(64) Setup {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t unused[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 32, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 8};
};
static_assert(sizeof(Setup) == Conv2dBodies::kStateBytes);
constexpr Setup kSetup;  // Not on the stack, as in products.cpp.

void begin(void* state) {
  _tile_storeconfig(state);
  _tile_loadconfig(&kSetup);
}

void end(const void* state) {
  if (static_cast<const Setup*>(state)->palette == 0) {
    _tile_release();
  } else {
    _tile_loadconfig(state);
  }
}

void run(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
         const Bf16* weights) {
  const auto bytes = static_cast<std::size_t>(block.from_stride) * sizeof(Bf16);
  const Bf16 *const a = block.from[0], *const b = block.from[1];
  const Bf16 *const c = block.from[2], *const d = block.from[3];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const Conv2dStep* const last = steps + full;
  for (; steps < last; ++steps) {
    _tile_loadd(5, weights + steps->weight, 64);
    _tile_loadd(4, a + steps->offset, bytes);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(4, b + steps->offset, bytes);
    _tile_dpbf16ps(1, 4, 5);
    _tile_loadd(4, c + steps->offset, bytes);
    _tile_dpbf16ps(2, 4, 5);
    _tile_loadd(4, d + steps->offset, bytes);
    _tile_dpbf16ps(3, 4, 5);
  }
  for (; steps < last + half; ++steps) {
    _tile_loadd(7, weights + steps->weight, 64);
    _tile_loadd(6, a + steps->offset, bytes);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(6, b + steps->offset, bytes);
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(6, c + steps->offset, bytes);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, d + steps->offset, bytes);
    _tile_dpbf16ps(3, 6, 7);
  }
  alignas(64) float sums[Conv2dBlock::kTiles][Conv2dBlock::kPixels * kLanes];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  for (int64_t tile = 0; tile < Conv2dBlock::kTiles; ++tile) {
    Bf16* to = block.to[tile];
    for (int64_t i = 0; i < Conv2dBlock::kPixels; ++i, to += block.to_stride) {
      store(to, load(sums[tile] + i * kLanes));
    }
  }
}

#else

void begin(void*) {}
void end(const void*) {}

F32 all_of(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return fill(value);
}

void run(const Conv2dBlock& block, const Conv2dStep* steps, int64_t full, int64_t half,
         const Bf16* weights) {
  for (int64_t tile = 0; tile < Conv2dBlock::kTiles; ++tile) {
    for (int64_t i = 0; i < Conv2dBlock::kPixels; ++i) {
      F32 even = fill(0), odd = fill(0);
      for (int64_t s = 0; s < full + half; ++s) {
        const Bf16* const from = block.from[tile] + i * block.from_stride + steps[s].offset;
        const int64_t inner = s < full ? Conv2dBodies::kInner : Conv2dBodies::kHalf;
        for (int64_t k = 0; k < inner; k += 2) {
          F32 first = fill(0), second = fill(0);
          load_woven(weights + steps[s].weight + k * kLanes, first, second);
          even = fma(all_of(from[k]), first, even);
          odd = fma(all_of(from[k + 1]), second, odd);
        }
      }
      store(block.to[tile] + i * block.to_stride, even + odd);
    }
  }
}

#endif

}  // namespace

template <>
Conv2dBodies make_bodies<Conv2dBodies, kIsa>() {
  return {.begin = begin, .end = end, .run = run};
}

}  // namespace gallop::kernel
