// Compiled for processors with tiles.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 finds it in its own intrinsics (its bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "kernels/tiled_product.h"

#include "kernels/amx_tiles.h"

namespace lacuna::amx {
namespace {

// A tile has 16 rows of 16 words of 32 bits: two numbers each that follow each other in depth. Of a, a row of the tile is a row; of b, a
// row of the tile is a word of depth and its columns are b's. So one step is 32 numbers deep.

constexpr int kTileRows = 16, kTileWords = kTileRows * kTileRows, kStep = 2 * kTileRows;
constexpr int64_t kStepWords = 2 * kTileWords;  // of a block of rows, or of a panel: one part of their numbers

int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// 32 numbers; those from `count` on are 0.
inline __m512i load(const uint16_t* from, int64_t count) {
  if (count >= kStep) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(count <= 0 ? 0 : (1U << count) - 1, from);
}

/// Words of the first 16 numbers of two rows: x0 y0, x1 y1, ...
inline __m512i woven_low(__m512i x, __m512i y) {
  const __m512i first = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), second = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(y));
  return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}
inline __m512i woven_high(__m512i x, __m512i y) {
  return woven_low(_mm512_shuffle_i64x2(x, x, 0xEE), _mm512_shuffle_i64x2(y, y, 0xEE));
}

/// Stores 16 rows of 16 words as columns of the tile.
inline void store_transposed(__m512i (&row)[kTileRows], uint32_t* tile) {
  __m512i pairs[kTileRows], fours[kTileRows];
  for (int i = 0; i < kTileRows; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < kTileRows; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm512_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
      fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
    }
  for (int c = 0; c < 4; ++c) {  // fours[4 i + c] holds columns c, c + 4, c + 8, c + 12 of rows 4 i to 4 i + 3
    const __m512i low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0x88), high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0x88),
                  low2 = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0xDD),
                  high2 = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0xDD);
    _mm512_storeu_si512(tile + c * kTileRows, _mm512_shuffle_i32x4(low, high, 0x88));
    _mm512_storeu_si512(tile + (8 + c) * kTileRows, _mm512_shuffle_i32x4(low, high, 0xDD));
    _mm512_storeu_si512(tile + (4 + c) * kTileRows, _mm512_shuffle_i32x4(low2, high2, 0x88));
    _mm512_storeu_si512(tile + (12 + c) * kTileRows, _mm512_shuffle_i32x4(low2, high2, 0xDD));
  }
}

/// Where a step's numbers lie: `count` lines, `stride` apart, each with `numbers` from `data` on. What a tile needs beyond them is 0.
template <class T>
struct Lines {
  const T* data;
  int64_t stride, count, numbers;

  Lines from(int64_t line) const { return {data + line * stride, stride, count - line, numbers}; }
};

/// 16 lines as rows or as columns of a tile.
inline void copy_lines(const Lines<uint16_t>& lines, uint32_t* tile) {
  for (int64_t i = 0; i < kTileRows; ++i)
    _mm512_storeu_si512(tile + i * kTileRows, load(lines.data + i * lines.stride, i < lines.count ? lines.numbers : 0));
}
inline void transpose_lines(const Lines<uint16_t>& lines, uint32_t* tile) {
  __m512i row[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) row[i] = load(lines.data + i * lines.stride, i < lines.count ? lines.numbers : 0);
  store_transposed(row, tile);
}

/// Words of two lines each: word i is of lines 2 i and 2 i + 1. The numbers of each line, up to 32, fill the columns of two tiles.
inline void weave_lines(const Lines<uint16_t>& lines, __m512i (&first)[kTileRows], __m512i (&second)[kTileRows]) {
  for (int64_t i = 0; i < kTileRows; ++i) {
    const __m512i x = load(lines.data + 2 * i * lines.stride, 2 * i < lines.count ? lines.numbers : 0),
                  y = load(lines.data + (2 * i + 1) * lines.stride, 2 * i + 1 < lines.count ? lines.numbers : 0);
    first[i] = woven_low(x, y);
    second[i] = woven_high(x, y);
  }
}

/// A step of a block of rows, or of a panel, in two tiles, from lines in depth: rows of a, columns of b ...
inline void copy_rows(const Lines<uint16_t>& lines, uint32_t* tiles) {
  copy_lines(lines, tiles);
  copy_lines(lines.from(kTileRows), tiles + kTileWords);
}
inline void transpose_columns(const Lines<uint16_t>& lines, uint32_t* tiles) {
  transpose_lines(lines, tiles);
  transpose_lines(lines.from(kTileRows), tiles + kTileWords);
}
/// ... and from lines across it: columns of a, rows of b.
inline void weave_rows(const Lines<uint16_t>& lines, uint32_t* tiles) {
  __m512i first[kTileRows], second[kTileRows];
  weave_lines(lines, first, second);
  store_transposed(first, tiles);
  store_transposed(second, tiles + kTileWords);
}
inline void weave_columns(const Lines<uint16_t>& lines, uint32_t* tiles) {
  __m512i first[kTileRows], second[kTileRows];
  weave_lines(lines, first, second);
  for (int i = 0; i < kTileRows; ++i) {
    _mm512_storeu_si512(tiles + i * kTileRows, first[i]);
    _mm512_storeu_si512(tiles + kTileWords + i * kTileRows, second[i]);
  }
}

/// The first 16 numbers of bf16, or those after them, as float.
inline __m512 widened_low(__m512i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), 16));
}
inline __m512 widened_high(__m512i x) {
  return widened_low(_mm512_shuffle_i64x2(x, x, 0xEE));
}

inline __m512i rounded(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

inline __m512 load_half(const float* from, int64_t count) {
  if (count >= kTileRows) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count <= 0 ? 0 : (1U << count) - 1), from);
}

/// 32 lines of 32 numbers as the sum of two of bf16 each; either then fills two tiles as `copy_rows` does.
inline void split_lines(const Lines<float>& lines, uint32_t* high, uint32_t* low) {
  for (int64_t i = 0; i < kStep; ++i) {
    const int64_t numbers = i < lines.count ? lines.numbers : 0;
    const float* const line = lines.data + i * lines.stride;
    const __m512 first = load_half(line, numbers), second = load_half(line + kTileRows, numbers - kTileRows);
    const __m512i upper = rounded(first, second);
    _mm512_storeu_si512(high + i * kTileRows, upper);
    _mm512_storeu_si512(low + i * kTileRows, rounded(first - widened_low(upper), second - widened_high(upper)));
  }
}

/// Lays out a step's lines by one of the functions above: those of bf16 as they are, those of float as both their parts.
template <void lay_out(const Lines<uint16_t>&, uint32_t*)>
inline void pack(const Lines<uint16_t>& lines, uint32_t* tiles) {
  lay_out(lines, tiles);
}
template <void lay_out(const Lines<uint16_t>&, uint32_t*)>
inline void pack(const Lines<float>& lines, uint32_t* tiles) {
  if constexpr (lay_out == copy_rows) {
    split_lines(lines, tiles, tiles + kStepWords);
  } else {
    alignas(64) uint32_t parts[2][kStepWords];
    split_lines(lines, parts[0], parts[1]);
    for (int i = 0; i < 2; ++i) {
      const Lines<uint16_t> part = {reinterpret_cast<const uint16_t*>(parts[i]), kStep, kStep, kStep};
      lay_out(part, tiles + i * kStepWords);
    }
  }
}

template <class T>
inline void pack_rows(const TiledProduct<T>& p, int64_t row, int64_t depth, uint32_t* tiles) {
  const T* const from = p.a.data + row * p.a.row + depth * p.a.column;
  const int64_t rows = p.rows - row, depths = p.depth - depth;
  if (p.a.column == 1) {
    pack<copy_rows>(Lines<T>{from, p.a.row, rows, depths}, tiles);
  } else {
    pack<weave_rows>(Lines<T>{from, p.a.column, depths, rows}, tiles);
  }
}

template <class T>
inline void pack_columns(const TiledProduct<T>& p, int64_t depth, int64_t column, uint32_t* tiles) {
  const T* const from = p.b.data + depth * p.b.row + column * p.b.column;
  const int64_t columns = p.columns - column, depths = p.depth - depth;
  if (p.b.column == 1) {
    pack<weave_columns>(Lines<T>{from, p.b.row, depths, columns}, tiles);
  } else {
    pack<transpose_columns>(Lines<T>{from, p.b.column, columns, depths}, tiles);
  }
}

/// Where a block's sums begin: with rows that lie `stride` bytes apart (0 = all rows are the same), or null = with 0.
struct Start {
  const float* sums;
  int64_t stride;
};

inline void load_tiles_of_rows(const uint32_t* tiles) {
  _tile_loadd(4, tiles, 64);
  _tile_loadd(5, tiles + kTileWords, 64);
}
inline void load_tiles_of_columns(const uint32_t* tiles) {
  _tile_loadd(6, tiles, 64);
  _tile_loadd(7, tiles + kTileWords, 64);
}
inline void multiply_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

/// Tiles 0 to 3 hold the sums of 32 rows and 32 columns, 4 and 5 rows, 6 and 7 columns.
template <class T>
inline void multiply_block(const uint32_t* rows, const uint32_t* columns, int64_t steps, Start start, float* c, int64_t c_row) {
  if (start.sums != nullptr) {
    const float* const below = start.sums + kTileRows * start.stride / 4;
    _tile_loadd(0, start.sums, start.stride);
    _tile_loadd(1, start.sums + kTileRows, start.stride);
    _tile_loadd(2, below, start.stride);
    _tile_loadd(3, below + kTileRows, start.stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < steps; ++s, rows += kTiledParts<T> * kStepWords, columns += kTiledParts<T> * kStepWords) {
    if constexpr (kTiledParts<T> == 1) {
      load_tiles_of_columns(columns);
      load_tiles_of_rows(rows);
      multiply_tiles();
    } else {
      load_tiles_of_rows(rows + kStepWords);  // low high ...
      load_tiles_of_columns(columns);
      multiply_tiles();
      load_tiles_of_rows(rows);  // ... + high high ...
      multiply_tiles();
      load_tiles_of_columns(columns + kStepWords);  // ... + high low
      multiply_tiles();
    }
  }
  const int64_t stride = c_row * 4;
  float* const below = c + kTileRows * c_row;
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kTileRows, stride);
  _tile_stored(2, below, stride);
  _tile_stored(3, below + kTileRows, stride);
}

/// What was written before is in memory when tiles are loaded: of which the compiler knows nothing.
inline void finish_writing() {
  asm volatile("" ::: "memory");
}

void copy(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// The same at the edge of c, where only some rows and columns are: by way of a whole block.
template <class T>
void multiply_edge(const uint32_t* rows, const uint32_t* columns, int64_t steps, Start start, float* c, int64_t c_row, int64_t count,
                   int64_t width) {
  alignas(64) float sums[kTiledBlock * kTiledBlock] = {};
  if (start.sums != nullptr)
    for (int64_t r = 0; r < count; ++r) copy(start.sums + r * start.stride / 4, width, sums + r * kTiledBlock);
  finish_writing();
  multiply_block<T>(rows, columns, steps, {sums, kTiledBlock * 4}, sums, kTiledBlock);
  for (int64_t r = 0; r < count; ++r) copy(sums + r * kTiledBlock, width, c + r * c_row);
}

/// Calls f(first step, steps) for each block of depths.
template <class T, class F>
void for_depths(const TiledProduct<T>& p, F f) {
  constexpr int64_t kSteps = kDepthBlock<T> / kStep;
  const int64_t all = (p.depth + kStep - 1) / kStep;
  for (int64_t step = 0; step < all; step += kSteps) f(step, least(kSteps, all - step));
}

/// Panels begin to end - 1 of a block of depths, side by side.
template <class T>
void pack_block(const TiledProduct<T>& p, int64_t step, int64_t steps, int64_t begin, int64_t end, uint32_t* panels) {
  for (int64_t panel = begin; panel < end; ++panel)
    for (int64_t s = 0; s < steps; ++s)
      pack_columns(p, (step + s) * kStep, panel * kTiledBlock, panels + (panel * steps + s) * kTiledParts<T> * kStepWords);
}

/// Blocks begin to end - 1 of the rows, over one block of depths: its panels are there. `to` is where the first row belongs.
template <class T>
void multiply_depths(const TiledProduct<T>& p, int64_t step, int64_t steps, const uint32_t* panels, int64_t begin, int64_t end, float* to) {
  constexpr int64_t kWords = kTiledParts<T> * kStepWords;  // of a step
  alignas(64) uint32_t rows[kDepthBlock<T> / kStep * kWords];
  for (int64_t row = begin * kTiledBlock; row < least(end * kTiledBlock, p.rows); row += kTiledBlock) {
    for (int64_t s = 0; s < steps; ++s) pack_rows(p, row, (step + s) * kStep, rows + s * kWords);
    finish_writing();
    const int64_t count = least(kTiledBlock, p.rows - row);
    for (int64_t column = 0; column < p.columns; column += kTiledBlock) {
      const uint32_t* const panel = panels + column / kTiledBlock * steps * kWords;
      float* const c = to + (row - begin * kTiledBlock) * p.c_row + column;
      Start start = {nullptr, 0};
      if (p.add || step > 0) {
        start = {c, p.c_row * 4};
      } else if (p.bias != nullptr) {
        start = {p.bias + column, 0};
      }
      const int64_t width = least(kTiledBlock, p.columns - column);
      if (count == kTiledBlock && width == kTiledBlock) {
        multiply_block<T>(rows, panel, steps, start, c, p.c_row);
      } else {
        multiply_edge<T>(rows, panel, steps, start, c, p.c_row, count, width);
      }
    }
  }
}

/// Where the panels of the block of depths that begins at `step` stand among all.
template <class T>
uint32_t* panels_of(const TiledProduct<T>& p, int64_t step) {
  return p.panels + step * tiled_blocks(p.columns) * kTiledParts<T> * kStepWords;
}

}  // namespace

template <class T>
void pack_panels(const TiledProduct<T>& p, int64_t begin, int64_t end) {
  for_depths(p, [&](int64_t step, int64_t steps) { pack_block(p, step, steps, begin, end, panels_of(p, step)); });
}

template <class T>
void multiply_rows(const TiledProduct<T>& p, int64_t begin, int64_t end, float* to) {
  const TilesInUse tiles;
  for_depths(p, [&](int64_t step, int64_t steps) { multiply_depths(p, step, steps, panels_of(p, step), begin, end, to); });
}

template <class T>
void multiply_deep(const TiledProduct<T>& p, float* to) {
  const TilesInUse tiles;
  for_depths(p, [&](int64_t step, int64_t steps) {
    pack_block(p, step, steps, 0, tiled_blocks(p.columns), p.panels);
    multiply_depths(p, step, steps, p.panels, 0, tiled_blocks(p.rows), to);
  });
}

template void pack_panels(const TiledProduct<uint16_t>&, int64_t, int64_t);
template void pack_panels(const TiledProduct<float>&, int64_t, int64_t);
template void multiply_rows(const TiledProduct<uint16_t>&, int64_t, int64_t, float*);
template void multiply_rows(const TiledProduct<float>&, int64_t, int64_t, float*);
template void multiply_deep(const TiledProduct<uint16_t>&, float*);
template void multiply_deep(const TiledProduct<float>&, float*);

}  // namespace lacuna::amx
