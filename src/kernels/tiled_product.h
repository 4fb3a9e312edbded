#pragma once

#include <cstdint>

/// Products of two matrices of bf16 in tiles (AMX), neither of which lasts: both are laid out for the tiles on the way. Plain data between
/// bf16_product.cpp and loops that are compiled for processors with tiles.
namespace lacuna {

/// Numbers of bf16 as bits; one of the strides is 1.
struct Bf16Matrix {
  const uint16_t* data;
  int64_t row, column;
};

/// c [rows, columns] = or, with `add`, += a [rows, depth] x b [depth, columns], plus `bias` [columns] in each row, unless that is null.
/// Every sum is one chain over depth, in parts of kDepthBlock: its bits do not depend on threads, nor on how many rows and columns there
/// are.
struct TiledProduct {
  int64_t rows, columns, depth;
  Bf16Matrix a, b;
  int64_t c_row;
  bool add;  ///< without a bias
  const float* bias;
  uint32_t* panels;  ///< room for b in tiles: panel_words(), or deep_panel_words()
};

inline constexpr int64_t kTiledBlock = 32;   ///< rows of a, and columns of b in a panel
inline constexpr int64_t kDepthBlock = 512;  ///< so deep a block of rows stays in the first cache while all panels pass

// Always inlined: code of this header must not come from the sources that need special instructions.

[[gnu::always_inline]] inline int64_t tiled_blocks(int64_t size) {
  return (size + kTiledBlock - 1) / kTiledBlock;
}
[[gnu::always_inline]] inline int64_t panel_words(const TiledProduct& product) {
  return tiled_blocks(product.columns) * kTiledBlock * tiled_blocks(product.depth) * kTiledBlock / 2;
}

/// Of one block of depths.
[[gnu::always_inline]] inline int64_t deep_panel_words(const TiledProduct& product) {
  return tiled_blocks(product.columns) * kTiledBlock * kDepthBlock / 2;
}

namespace amx {
/// Panels begin to end - 1 of b; to be done for all before the first row.
void pack_panels(const TiledProduct& product, int64_t begin, int64_t end);
/// Blocks begin to end - 1 of the rows of c; `rows` is where the first of them belongs.
void multiply_rows(const TiledProduct& product, int64_t begin, int64_t end, float* rows);
/// All of c on one thread, b laid out one block of depths after the other: what is deep, and neither tall nor wide, thus stays in the
/// cache.
void multiply_deep(const TiledProduct& product, float* c);
}  // namespace amx

}  // namespace lacuna
