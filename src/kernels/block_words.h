#pragma once

// Loads and stores of the tiles that block_loops.h lays factors out in, by AVX-512 or AVX2: whichever the including
// source is compiled for.

#include <cstdint>

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

}  // namespace
}  // namespace lacuna::LACUNA_TARGET
