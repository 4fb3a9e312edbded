#pragma once

// philox() of base/random.h for many counters side by side. Included by sources that are compiled once for each
// instruction set: everything is inlined there.

#include <cstdint>

#include "base/random.h"
#include "kernels/intrinsics.h"

namespace lacuna {

/// Vectors of 32-bit words and their operations, in a namespace for each width.
#ifdef __AVX512F__
inline namespace words_of_512_bits {

using WordVector = __m512i;

[[gnu::always_inline]] inline WordVector all_words(uint32_t word) {
  return _mm512_set1_epi32(static_cast<int>(word));
}
/// The halves of the products of 64 bits.
[[gnu::always_inline]] inline void multiply_words(WordVector x, WordVector y, WordVector& upper, WordVector& lower) {
  const WordVector even = _mm512_mul_epu32(x, y), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), y);
  upper = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd);
  lower = _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32));
}
#else
inline namespace words_of_256_bits {

using WordVector = __m256i;

[[gnu::always_inline]] inline WordVector all_words(uint32_t word) {
  return _mm256_set1_epi32(static_cast<int>(word));
}
[[gnu::always_inline]] inline void multiply_words(WordVector x, WordVector y, WordVector& upper, WordVector& lower) {
  const WordVector even = _mm256_mul_epu32(x, y), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);
  upper = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  lower = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
#endif

/// Turns counters into random bits in place: word i of as many blocks as WordVector has words.
[[gnu::always_inline]] inline void make_philox(uint64_t key, WordVector (&word)[4]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const WordVector factor0 = all_words(kPhiloxFactor0), factor2 = all_words(kPhiloxFactor2);
  for (int round = 0; round < kPhiloxRounds; ++round, k0 += kPhiloxKeyStep0, k1 += kPhiloxKeyStep1) {
    WordVector upper0, lower0, upper2, lower2;
    multiply_words(word[0], factor0, upper0, lower0);
    multiply_words(word[2], factor2, upper2, lower2);
    word[0] = upper2 ^ word[1] ^ all_words(k0);
    word[2] = upper0 ^ word[3] ^ all_words(k1);
    word[1] = lower2;
    word[3] = lower0;
  }
}

}  // inline namespace
}  // namespace lacuna
