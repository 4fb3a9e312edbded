#pragma once

// How products in blocks lay factors out in tiles. Included by sources that are compiled once for each instruction set,
// AVX2 at least.

#include <cstdint>

#include "kernels/block_product.h"
#include "kernels/intrinsics.h"

namespace lacuna::LACUNA_TARGET {
namespace {

#ifdef __AVX512F__

/// 16 words: a line of a tile.
typedef __m512i TileLine;

/// 32 numbers; those from `count` on are 0.
inline __m512i load(const uint16_t* from, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(count <= 0 ? 0 : (1U << count) - 1, from);
}

/// 16 numbers; those from `count` on are 0.
inline __m512 load(const float* from, int64_t count) {
  if (count >= 16) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count <= 0 ? 0 : (1U << count) - 1), from);
}

inline TileLine as_words(TileLine words) {
  return words;
}
inline TileLine as_words(__m512 words) {
  return _mm512_castps_si512(words);
}

inline void store(TileLine words, uint32_t* to) {
  _mm512_storeu_si512(to, words);
}

/// Stores 16 rows of 16 words as columns of a tile, whose lines are `line` words apart.
inline void store_transposed(const TileLine (&row)[16], uint32_t* tile, int64_t line) {
  __m512i pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm512_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
      fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
    }
  for (int c = 0; c < 4; ++c) {  // fours[4 i + c] holds columns c, c + 4, c + 8, c + 12 of rows 4 i to 4 i + 3
    const __m512i low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0x88), high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0x88),
                  low2 = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0xDD),
                  high2 = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0xDD);
    _mm512_storeu_si512(tile + c * line, _mm512_shuffle_i32x4(low, high, 0x88));
    _mm512_storeu_si512(tile + (8 + c) * line, _mm512_shuffle_i32x4(low, high, 0xDD));
    _mm512_storeu_si512(tile + (4 + c) * line, _mm512_shuffle_i32x4(low2, high2, 0x88));
    _mm512_storeu_si512(tile + (12 + c) * line, _mm512_shuffle_i32x4(low2, high2, 0xDD));
  }
}

#else

/// 16 words: a line of a tile.
struct TileLine {
  __m256i low, high;
};

/// 8 numbers; those from `count` on are 0.
inline __m256i load_half(const float* from, int64_t count) {
  if (count >= 8) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), numbers);
  return count <= 0 ? _mm256_setzero_si256() : _mm256_maskload_epi32(reinterpret_cast<const int*>(from), wanted);
}

/// 16 numbers; those from `count` on are 0.
inline TileLine load(const float* from, int64_t count) {
  return {load_half(from, count), load_half(from + 8, count - 8)};
}
inline TileLine as_words(TileLine words) {
  return words;
}

inline void store_half(__m256i words, uint32_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
}
inline void store(TileLine words, uint32_t* to) {
  store_half(words.low, to);
  store_half(words.high, to + 8);
}

/// Stores 8 rows of 8 words as columns, each a line.
inline void store_transposed(const __m256i (&row)[8], uint32_t* to, int64_t line) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
      fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
    }
  for (int c = 0; c < 4; ++c) {  // fours[4 i + c] holds columns c and c + 4 of rows 4 i to 4 i + 3
    store_half(_mm256_permute2x128_si256(fours[c], fours[4 + c], 0x20), to + c * line);
    store_half(_mm256_permute2x128_si256(fours[c], fours[4 + c], 0x31), to + (4 + c) * line);
  }
}

/// Stores 16 rows of 16 words as columns of a tile, whose lines are `line` words apart.
inline void store_transposed(const TileLine (&row)[16], uint32_t* tile, int64_t line) {
  for (int first = 0; first < 16; first += 8) {
    __m256i low[8], high[8];
    for (int i = 0; i < 8; ++i) {
      low[i] = row[first + i].low;
      high[i] = row[first + i].high;
    }
    store_transposed(low, tile + first, line);
    store_transposed(high, tile + 8 * line + first, line);
  }
}

#endif

// The words of a step fill two tiles of 16 lines of 16 words each. In a block of rows, a line is a row of a; in a
// panel, a line is one word of depth, and its columns are columns of b. The second tile starts at row or column 16.

constexpr int kTileRows = 16, kTileWords = kTileRows * kTileRows;
constexpr int64_t kStepWords = 2 * kTileWords;  // of a block of rows, or of a panel: one part of their numbers

/// Strides in words: from one step to the next, from the first tile of a step to the second, and from one line of a
/// tile to the next.
struct TilePlaces {
  int64_t step, second, line;
};
template <class Factor>
constexpr int64_t kStep = kWordsInStep* Factor::kNumbersInWord;  // numbers deep

/// The numbers of a step in memory: `count` lines, `stride` apart, each with `numbers` from `data` on. Tiles are padded
/// with 0 beyond them.
template <class Number>
struct Lines {
  const Number* data;
  int64_t stride, count, numbers;

  Lines from_line(int64_t line) const { return {data + line * stride, stride, count - line, numbers}; }
  Lines from_number(int64_t number) const { return {data + number, stride, count, numbers - number}; }
  /// Loads a line's first 16 words.
  auto load_line(int64_t line) const { return load(data + line * stride, line < count ? numbers : 0); }

  /// Calls f(line, its first 16 words) for 16 lines.
  template <class F>
  [[gnu::always_inline]] void for_lines(F f) const {
    if (count >= kTileRows && numbers >= kWhole) {
      for (int64_t i = 0; i < kTileRows; ++i) f(i, as_words(load(data + i * stride, kWhole)));
    } else {
      for (int64_t i = 0; i < kTileRows; ++i) f(i, as_words(load_line(i)));
    }
  }
  static constexpr int64_t kWhole = kWordsInStep * 4 / sizeof(Number);  ///< numbers in 16 words
};

/// Copy 16 lines to the lines, or to the columns, of a tile whose lines are `line` words apart.
template <class Number>
inline void copy_lines(const Lines<Number>& lines, uint32_t* tile, int64_t line) {
  lines.for_lines([=](int64_t i, TileLine words) { store(words, tile + i * line); });
}
template <class Number>
inline void transpose_lines(const Lines<Number>& lines, uint32_t* tile, int64_t line) {
  TileLine row[kTileRows];
  lines.for_lines([&](int64_t i, TileLine words) { row[i] = words; });
  store_transposed(row, tile, line);
}

/// Copies steps of 32 lines to the lines of two tiles each, line by line in memory order.
template <class Number>
inline void copy_rows(const Lines<Number>& lines, int64_t steps, uint32_t* tiles, const TilePlaces& places) {
  constexpr int64_t kWhole = Lines<Number>::kWhole;
  for (int64_t i = 0; i < kBlock; ++i) {
    uint32_t* to = tiles + i / kTileRows * places.second + i % kTileRows * places.line;
    const Number* from = lines.data + i * lines.stride;
    int64_t left = i < lines.count ? lines.numbers : 0;
    for (int64_t s = 0; s < steps; ++s, from += kWhole, left -= kWhole, to += places.step)
      store(as_words(left >= kWhole ? load(from, kWhole) : load(from, left)), to);
  }
}

// A LayOut packs a step into two tiles (rows_in_depth packs all steps). The lines of memory run along the depth (rows
// of a, columns of b) or across it (columns of a, rows of b).

template <class Factor>
struct LayOut;

template <class Number>
struct LayOutInDepth {
  static void rows_in_depth(const Lines<Number>& lines, int64_t steps, uint32_t* tiles, const TilePlaces& places) {
    copy_rows(lines, steps, tiles, places);
  }
  static void columns_in_depth(const Lines<Number>& lines, uint32_t* tiles, const TilePlaces& places) {
    transpose_lines(lines, tiles, places.line);
    transpose_lines(lines.from_line(kTileRows), tiles + places.second, places.line);
  }
};

template <>
struct LayOut<FloatFactor> : LayOutInDepth<float> {
  static void rows_across(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    transpose_lines(lines, tiles, places.line);
    transpose_lines(lines.from_number(kTileRows), tiles + places.second, places.line);
  }
  static void columns_across(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    copy_lines(lines, tiles, places.line);
    copy_lines(lines.from_number(kTileRows), tiles + places.second, places.line);
  }
};

#ifdef __AVX512BF16__

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

#endif

}  // namespace
}  // namespace lacuna::LACUNA_TARGET
