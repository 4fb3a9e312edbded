#pragma once

// Packing of bf16 factors into tiles, two numbers to a word. Included by sources that are compiled for AVX-512 and
// more.

#include "kernels/block_loops.h"

namespace lacuna::LACUNA_TARGET {
namespace {

/// Interleaves the first 16 numbers of two rows into words: x0 y0, x1 y1, ...
inline __m512i woven_low(__m512i x, __m512i y) {
  const __m512i first = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), second = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(y));
  return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}
inline __m512i woven_high(__m512i x, __m512i y) {
  return woven_low(_mm512_shuffle_i64x2(x, x, 0xEE), _mm512_shuffle_i64x2(y, y, 0xEE));
}

/// Interleaves pairs of lines: word i holds lines 2 i and 2 i + 1. The numbers of each line, up to 32, fill the columns
/// of two tiles.
inline void weave_lines(const Lines<uint16_t>& lines, __m512i (&first)[kTileRows], __m512i (&second)[kTileRows]) {
  for (int64_t i = 0; i < kTileRows; ++i) {
    const __m512i x = lines.load_line(2 * i), y = lines.load_line(2 * i + 1);
    first[i] = woven_low(x, y);
    second[i] = woven_high(x, y);
  }
}

template <>
struct LayOut<Bf16Factor> : LayOutInDepth<uint16_t> {
  static void rows_across(const Lines<uint16_t>& lines, uint32_t* tiles, const TilePlaces& places) {
    __m512i first[kTileRows], second[kTileRows];
    weave_lines(lines, first, second);
    store_transposed(first, tiles, places.line);
    store_transposed(second, tiles + places.second, places.line);
  }
  static void columns_across(const Lines<uint16_t>& lines, uint32_t* tiles, const TilePlaces& places) {
    __m512i first[kTileRows], second[kTileRows];
    weave_lines(lines, first, second);
    for (int i = 0; i < kTileRows; ++i) {
      store(first[i], tiles + i * places.line);
      store(second[i], tiles + places.second + i * places.line);
    }
  }
};

}  // namespace
}  // namespace lacuna::LACUNA_TARGET
