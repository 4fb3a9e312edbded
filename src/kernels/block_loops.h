#pragma once

// How products in blocks lay out their factors and go through them. Included by sources that are compiled once for each instruction set,
// AVX-512 at least, and say how a block of rows meets a panel.

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 finds it in its own intrinsics (its bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "kernels/block_product.h"
#include "kernels/vector_sums.h"

namespace lacuna::LACUNA_TARGET {
namespace {

// Words of a step lie in two tiles, each of 16 rows of 16 words. Of a block of rows, a row of the tile is a row; of a panel, a row of the
// tile is a word of depth and its columns are b's. So word w of row r is at 16 r + w, and word w of column c at 16 w + c in the first
// tile, or in the second from column 16 on.

constexpr int kTileRows = 16, kTileWords = kTileRows * kTileRows;
constexpr int64_t kStepWords = 2 * kTileWords;  // of a block of rows, or of a panel: one part of their numbers
template <class Factor>
constexpr int64_t kStep = kWordsInStep* Factor::kNumbersInWord;  // numbers deep

int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// 32 numbers; those from `count` on are 0.
inline __m512i load(const uint16_t* from, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(count <= 0 ? 0 : (1U << count) - 1, from);
}

/// 16 numbers; those from `count` on are 0.
inline __m512 load(const float* from, int64_t count) {
  if (count >= kTileRows) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count <= 0 ? 0 : (1U << count) - 1), from);
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
template <class Number>
struct Lines {
  const Number* data;
  int64_t stride, count, numbers;

  Lines from_line(int64_t line) const { return {data + line * stride, stride, count - line, numbers}; }
  Lines from_number(int64_t number) const { return {data + number, stride, count, numbers - number}; }
  /// A line's first 16 words.
  auto load_line(int64_t line) const { return load(data + line * stride, line < count ? numbers : 0); }
};

inline __m512i as_words(__m512i words) {
  return words;
}
inline __m512i as_words(__m512 words) {
  return _mm512_castps_si512(words);
}

/// 16 lines as rows or as columns of a tile.
template <class Number>
inline void copy_lines(const Lines<Number>& lines, uint32_t* tile) {
  for (int64_t i = 0; i < kTileRows; ++i) _mm512_storeu_si512(tile + i * kTileRows, as_words(lines.load_line(i)));
}
template <class Number>
inline void transpose_lines(const Lines<Number>& lines, uint32_t* tile) {
  __m512i row[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) row[i] = as_words(lines.load_line(i));
  store_transposed(row, tile);
}

/// Words of two lines each: word i is of lines 2 i and 2 i + 1. The numbers of each line, up to 32, fill the columns of two tiles.
inline void weave_lines(const Lines<uint16_t>& lines, __m512i (&first)[kTileRows], __m512i (&second)[kTileRows]) {
  for (int64_t i = 0; i < kTileRows; ++i) {
    const __m512i x = lines.load_line(2 * i), y = lines.load_line(2 * i + 1);
    first[i] = woven_low(x, y);
    second[i] = woven_high(x, y);
  }
}

/// Steps of 32 lines as the rows of two tiles each; line by line, as they lie in memory.
template <class Number>
inline void copy_rows(Lines<Number> lines, int64_t steps, uint32_t* tiles) {
  constexpr int64_t kNumbers = kWordsInStep * 4 / sizeof(Number);
  for (int64_t i = 0; i < kBlock; ++i) {
    Lines<Number> line = lines;
    for (int64_t s = 0; s < steps; ++s, line = line.from_number(kNumbers))
      _mm512_storeu_si512(tiles + s * kStepWords + i * kTileRows, as_words(line.load_line(i)));
  }
}

// How a step becomes two tiles (rows_in_depth: how all do). From lines in depth come rows of a and columns of b; from lines across it,
// columns of a and rows of b.

template <class Factor>
struct LayOut;

template <class Number>
struct LayOutInDepth {
  static void rows_in_depth(const Lines<Number>& lines, int64_t steps, uint32_t* tiles) { copy_rows(lines, steps, tiles); }
  static void columns_in_depth(const Lines<Number>& lines, uint32_t* tiles) {
    transpose_lines(lines, tiles);
    transpose_lines(lines.from_line(kTileRows), tiles + kTileWords);
  }
};

template <>
struct LayOut<Bf16Factor> : LayOutInDepth<uint16_t> {
  static void rows_across(const Lines<uint16_t>& lines, uint32_t* tiles) {
    __m512i first[kTileRows], second[kTileRows];
    weave_lines(lines, first, second);
    store_transposed(first, tiles);
    store_transposed(second, tiles + kTileWords);
  }
  static void columns_across(const Lines<uint16_t>& lines, uint32_t* tiles) {
    __m512i first[kTileRows], second[kTileRows];
    weave_lines(lines, first, second);
    for (int i = 0; i < kTileRows; ++i) {
      _mm512_storeu_si512(tiles + i * kTileRows, first[i]);
      _mm512_storeu_si512(tiles + kTileWords + i * kTileRows, second[i]);
    }
  }
};

template <>
struct LayOut<FloatFactor> : LayOutInDepth<float> {
  static void rows_across(const Lines<float>& lines, uint32_t* tiles) {
    transpose_lines(lines, tiles);
    transpose_lines(lines.from_number(kTileRows), tiles + kTileWords);
  }
  static void columns_across(const Lines<float>& lines, uint32_t* tiles) {
    copy_lines(lines, tiles);
    copy_lines(lines.from_number(kTileRows), tiles + kTileWords);
  }
};

/// `steps` steps of the block of rows that begins at `row`, from `step` on.
template <class Factor>
void pack_rows(const BlockProduct<Factor>& p, int64_t row, int64_t step, int64_t steps, uint32_t* tiles) {
  using Number = typename Factor::Number;
  const Number* const first = p.a.data + row * p.a.row;
  const int64_t rows = p.rows - row;
  if (p.a.column == 1) {
    const int64_t depth = step * kStep<Factor>;
    return LayOut<Factor>::rows_in_depth(Lines<Number>{first + depth, p.a.row, rows, p.depth - depth}, steps, tiles);
  }
  for (int64_t end = step + steps; step < end; ++step, tiles += Factor::kParts * kStepWords) {
    const int64_t depth = step * kStep<Factor>;
    LayOut<Factor>::rows_across(Lines<Number>{first + depth * p.a.column, p.a.column, p.depth - depth, rows}, tiles);
  }
}

/// A step of the panel that begins at `column`, from `depth` on.
template <class Factor>
inline void pack_columns(const BlockProduct<Factor>& p, int64_t depth, int64_t column, uint32_t* tiles) {
  using Number = typename Factor::Number;
  const Number* const from = p.b.data + depth * p.b.row + column * p.b.column;
  const int64_t columns = p.columns - column, depths = p.depth - depth;
  if (p.b.column == 1) {
    LayOut<Factor>::columns_across(Lines<Number>{from, p.b.row, depths, columns}, tiles);
  } else {
    LayOut<Factor>::columns_in_depth(Lines<Number>{from, p.b.column, columns, depths}, tiles);
  }
}

// A Multiplier<Factor> lives while blocks are multiplied, and has a function
//
//   void multiply(const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums, float* c, int64_t c_row, int64_t count) const;
//
// which makes the block of `count` rows (at most 32) and 32 columns of c, of a block of rows and a panel that were laid out.

/// What was written before is in memory when tiles are loaded: of which the compiler knows nothing.
inline void finish_writing() {
  asm volatile("" ::: "memory");
}

void copy(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// A block of fewer than 32 rows or columns, by way of a whole one.
template <class Multiplier>
void multiply_edge(const Multiplier& multiplier, const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums start, float* c,
                   int64_t c_row, int64_t count, int64_t width) {
  alignas(64) float sums[kBlock * kBlock] = {};
  if (start.sums != nullptr)
    for (int64_t r = 0; r < count; ++r) copy(start.sums + r * start.row, width, sums + r * kBlock);
  finish_writing();
  multiplier.multiply(rows, columns, steps, {sums, kBlock}, sums, kBlock, count);
  for (int64_t r = 0; r < count; ++r) copy(sums + r * kBlock, width, c + r * c_row);
}

/// Calls f(first step, steps) for each block of depths.
template <class Factor, class F>
void for_depths(const BlockProduct<Factor>& p, F f) {
  constexpr int64_t kSteps = kDepthBlock<Factor> / kStep<Factor>;
  const int64_t all = (p.depth + kStep<Factor> - 1) / kStep<Factor>;
  for (int64_t step = 0; step < all; step += kSteps) f(step, least(kSteps, all - step));
}

/// Panels begin to end - 1 of a block of depths, side by side.
template <class Factor>
void pack_block(const BlockProduct<Factor>& p, int64_t step, int64_t steps, int64_t begin, int64_t end, uint32_t* panels) {
  for (int64_t panel = begin; panel < end; ++panel)
    for (int64_t s = 0; s < steps; ++s)
      pack_columns(p, (step + s) * kStep<Factor>, panel * kBlock, panels + (panel * steps + s) * Factor::kParts * kStepWords);
}

/// Blocks begin to end - 1 of the rows, over one block of depths: its panels are there. `to` is where the first row belongs.
template <class Multiplier, class Factor>
void multiply_depths(const Multiplier& multiplier, const BlockProduct<Factor>& p, int64_t step, int64_t steps, const uint32_t* panels,
                     int64_t begin, int64_t end, float* to) {
  constexpr int64_t kWords = Factor::kParts * kStepWords;  // of a step
  alignas(64) uint32_t rows[kDepthBlock<Factor> / kStep<Factor> * kWords];
  for (int64_t row = begin * kBlock; row < least(end * kBlock, p.rows); row += kBlock) {
    pack_rows(p, row, step, steps, rows);
    finish_writing();
    const int64_t count = least(kBlock, p.rows - row);
    for (int64_t column = 0; column < p.columns; column += kBlock) {
      const uint32_t* const panel = panels + column / kBlock * steps * kWords;
      float* const c = to + (row - begin * kBlock) * p.c_row + column;
      FirstSums start = {nullptr, 0};
      if (p.add || step > 0) {
        start = {c, p.c_row};
      } else if (p.bias != nullptr) {
        start = {p.bias + column, 0};
      }
      const int64_t width = least(kBlock, p.columns - column);
      if (count == kBlock && width == kBlock) {
        multiplier.multiply(rows, panel, steps, start, c, p.c_row, kBlock);
      } else {
        multiply_edge(multiplier, rows, panel, steps, start, c, p.c_row, count, width);
      }
    }
  }
}

/// Where the panels of the block of depths that begins at `step` stand among all.
template <class Factor>
uint32_t* panels_of(const BlockProduct<Factor>& p, int64_t step) {
  return p.panels + step * blocks_in(p.columns) * Factor::kParts * kStepWords;
}

template <class Factor>
void pack_panels(const BlockProduct<Factor>& p, int64_t begin, int64_t end) {
  for_depths(p, [&](int64_t step, int64_t steps) { pack_block(p, step, steps, begin, end, panels_of(p, step)); });
}

template <template <class> class Multiplier, class Factor>
void multiply_rows(const BlockProduct<Factor>& p, int64_t begin, int64_t end, float* to) {
  const Multiplier<Factor> multiplier;
  for_depths(p, [&](int64_t step, int64_t steps) { multiply_depths(multiplier, p, step, steps, panels_of(p, step), begin, end, to); });
}

template <template <class> class Multiplier, class Factor>
void multiply_deep(const BlockProduct<Factor>& p, float* to) {
  const Multiplier<Factor> multiplier;
  for_depths(p, [&](int64_t step, int64_t steps) {
    pack_block(p, step, steps, 0, blocks_in(p.columns), p.panels);
    multiply_depths(multiplier, p, step, steps, p.panels, 0, blocks_in(p.rows), to);
  });
}

template <template <class> class Multiplier, class Factor>
constexpr BlockKernel<Factor> kernel_of() {
  return {pack_panels<Factor>, multiply_rows<Multiplier, Factor>, multiply_deep<Multiplier, Factor>};
}

}  // namespace
}  // namespace lacuna::LACUNA_TARGET
