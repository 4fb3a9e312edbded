#pragma once

#include <cstdint>

/// Products of two matrices in tiles (AMX), neither of which lasts: both are laid out for the tiles on the way. Plain data between
/// product_in_tiles.cpp and loops that are compiled for processors with tiles.
namespace lacuna {

/// Of T: uint16_t (bf16, as bits) or float. One of the strides is 1.
template <class T>
struct TiledMatrix {
  const T* data;
  int64_t row, column;
};

/// A factor's number is one number of bf16; or, of a float, the sum of two, high + low, of which the product is taken as low high +
/// high high + high low: what is left out is at most 2^-15 of the size of the product.
template <class T>
inline constexpr int64_t kTiledParts = sizeof(T) / sizeof(uint16_t);

/// c [rows, columns] = or, with `add`, += a [rows, depth] x b [depth, columns], plus `bias` [columns] in each row, unless that is null.
/// Every sum is one chain over depth, in parts of kDepthBlock: its bits do not depend on threads, nor on how many rows and columns there
/// are.
template <class T>
struct TiledProduct {
  int64_t rows, columns, depth;
  TiledMatrix<T> a, b;
  int64_t c_row;
  bool add;  ///< without a bias
  const float* bias;
  uint32_t* panels;  ///< room for b in tiles: panel_words(), or deep_panel_words()
};

inline constexpr int64_t kTiledBlock = 32;  ///< rows of a, and columns of b in a panel
template <class T>
inline constexpr int64_t kDepthBlock = 512 / kTiledParts<T>;  ///< so deep a block of rows stays in the first cache while all panels pass

// Always inlined: code of this header must not come from the sources that need special instructions.

[[gnu::always_inline]] inline int64_t tiled_blocks(int64_t size) {
  return (size + kTiledBlock - 1) / kTiledBlock;
}
template <class T>
[[gnu::always_inline]] inline int64_t panel_words(const TiledProduct<T>& product) {
  return tiled_blocks(product.columns) * kTiledBlock * tiled_blocks(product.depth) * kTiledBlock / 2 * kTiledParts<T>;
}

/// Of one block of depths.
template <class T>
[[gnu::always_inline]] inline int64_t deep_panel_words(const TiledProduct<T>& product) {
  return tiled_blocks(product.columns) * kTiledBlock * kDepthBlock<T> / 2 * kTiledParts<T>;
}

/// For T = uint16_t and float.
namespace amx {
/// Panels begin to end - 1 of b; to be done for all before the first row.
template <class T>
void pack_panels(const TiledProduct<T>& product, int64_t begin, int64_t end);
/// Blocks begin to end - 1 of the rows of c; `rows` is where the first of them belongs.
template <class T>
void multiply_rows(const TiledProduct<T>& product, int64_t begin, int64_t end, float* rows);
/// All of c on one thread, b laid out one block of depths after the other: what is deep, and neither tall nor wide, thus stays in the
/// cache.
template <class T>
void multiply_deep(const TiledProduct<T>& product, float* c);
}  // namespace amx

}  // namespace lacuna
