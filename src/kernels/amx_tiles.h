#pragma once

// The tile registers of AMX. Included only by sources that are compiled for it.

#include <immintrin.h>

#include <cstdint>

namespace lacuna {

/// The configuration that LDTILECFG loads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, unused[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileShapes kTileShapes;

/// Configures the tiles with these shapes while an instance lives.
class TilesInUse {
 public:
  [[gnu::always_inline]] TilesInUse() {
    asm volatile("ldtilecfg %0" ::"m"(kTileShapes));  // the intrinsic's declaration covers the first bytes only
  }
  [[gnu::always_inline]] ~TilesInUse() { _tile_release(); }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;
};

}  // namespace lacuna
