#pragma once

#if defined(__AMX_BF16__)

#include <immintrin.h>

#include <cstdint>

namespace gallop::kernel {
namespace {

/// The configuration of the machine's 8 tiles, as ldtilecfg reads it: 16 rows of 64 bytes each by
/// default. Must not be on the stack: g++ 12 does not know that the instruction reads all of it and
/// drops the stores.
struct alignas(64) TileSetup {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t unused[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Saves the tile configuration for end_tiles() in `state`, of the same size and alignment.
inline void begin_tiles(const TileSetup& setup, void* state) {
  _tile_storeconfig(state);
  _tile_loadconfig(&setup);
}
inline void end_tiles(const void* state) {
  if (static_cast<const TileSetup*>(state)->palette == 0) {
    _tile_release();
  } else {
    _tile_loadconfig(state);
  }
}

}  // namespace
}  // namespace gallop::kernel

#endif
