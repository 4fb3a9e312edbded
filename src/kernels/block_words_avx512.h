#pragma once

// What block_loops.h lays words out with, by AVX-512.

#include <cstdint>

#include "kernels/intrinsics.h"

namespace lacuna::LACUNA_TARGET {
namespace {

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

}  // namespace
}  // namespace lacuna::LACUNA_TARGET
