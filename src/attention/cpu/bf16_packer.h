#pragma once

#include <hwy/highway.h>
#include <immintrin.h>

#include <cstdint>

// Packs the factors of products in bf16. Included only by core_bf16.cpp.

namespace lacuna::core {
namespace LACUNA_SIMD_NAMESPACE {

/// A factor of bf16, two numbers to a word: a left factor has two neighbors of a row, a right factor two neighbors of
/// a column.
struct Words {
  uint32_t* data;
  int64_t row;  ///< from one to the next
};

/// Packs numbers into words.
class BF16Packer {
 public:
  /// Rows of float or of bf16, `stride` elements apart.
  struct Rows {
    const float* numbers;
    const uint16_t* stored;  ///< null = numbers
    int64_t stride;

    Rows from(int64_t row) const {
      return {numbers == nullptr ? nullptr : numbers + row * stride, stored == nullptr ? nullptr : stored + row * stride, stride};
    }
  };

  /// Writes (rows, columns) as a left factor, and zeros in the rest of `padded_rows` and `padded_columns`, a multiple
  /// of 32.
  static void pack_left(int rows, int columns, const Rows& from, int padded_rows, int padded_columns, Words to) {
    from.stored == nullptr ? pack_left_from(rows, columns, from.numbers, from.stride, padded_rows, padded_columns, to)
                           : pack_left_from(rows, columns, from.stored, from.stride, padded_rows, padded_columns, to);
  }
  /// Writes (rows, columns) as a right factor, and zeros in the rest of `padded_rows`, which is even, and
  /// `padded_columns`, a multiple of 16.
  static void pack_right(int rows, int columns, const Rows& from, int padded_rows, int padded_columns, Words to) {
    from.stored == nullptr ? pack_right_from(rows, columns, from.numbers, from.stride, padded_rows, padded_columns, to)
                           : pack_right_from(rows, columns, from.stored, from.stride, padded_rows, padded_columns, to);
  }
  static void widen_row(int count, const uint16_t* from, float* to) {
    for (int c = 0; c < count; c += 16) {
      const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half(from + c, count - c)), 16);
      _mm512_mask_storeu_ps(to + c, mask_of(count - c), (__m512)bits);
    }
  }
  /// Writes scale times `count` numbers, rounded.
  static void round_row(int count, float scale, const float* from, uint16_t* to) {
    const __m512 factor = _mm512_set1_ps(scale);
    for (int c = 0; c < count; c += 32) {
      const __m512i both =
          rounded(_mm512_mul_ps(factor, load(from + c, count - c)), _mm512_mul_ps(factor, load(from + c + 16, count - c - 16)));
      count - c >= 32 ? _mm512_storeu_si512(to + c, both) : _mm512_mask_storeu_epi16(to + c, (1U << (count - c)) - 1, both);
    }
  }

 private:
  template <class T>
  static void pack_left_from(int rows, int columns, const T* from, int64_t from_row, int padded_rows, int padded_columns, Words to) {
    for (int r = 0; r < padded_rows; ++r) {
      prefetch(from + (r + kAhead) * from_row, columns);
      for (int c = 0; c < padded_columns; c += 32)
        store(numbers_of_row(from + r * from_row + c, r < rows ? columns - c : 0), to.data + r * to.row + c / 2);
    }
  }
  template <class T>
  static void pack_right_from(int rows, int columns, const T* from, int64_t from_row, int padded_rows, int padded_columns, Words to) {
    for (int r = 0; r < padded_rows; r += 2) {
      prefetch(from + (r + kAhead) * from_row, columns);
      prefetch(from + (r + kAhead + 1) * from_row, columns);
      for (int c = 0; c < padded_columns; c += 16) {
        const __m512i both =
            two_rows(from + r * from_row + c, r < rows ? columns - c : 0, from + (r + 1) * from_row + c, r + 1 < rows ? columns - c : 0);
        store(_mm512_permutexvar_epi16(interleaved_order(), both), to.data + r / 2 * to.row + c);
      }
    }
  }

  static constexpr int kAhead = 12;  ///< rows from the one that is packed to the one that is prefetched: rows of a tensor lie far apart
  template <class T>
  static HWY_INLINE void prefetch(const T* row, int columns) {
    constexpr int kLine = 64 / sizeof(T);
    for (int c = 0; c < columns; c += kLine) _mm_prefetch(row + c, _MM_HINT_T0);
  }

  /// Returns 32 numbers of a row; those from `count` on are 0.
  static HWY_INLINE __m512i numbers_of_row(const float* from, int count) { return rounded(load(from, count), load(from + 16, count - 16)); }
  static HWY_INLINE __m512i numbers_of_row(const uint16_t* from, int count) {
    return _mm512_maskz_loadu_epi16(count >= 32 ? ~0U : count > 0 ? (1U << count) - 1 : 0, from);
  }
  /// Returns 16 numbers of each of two rows.
  static HWY_INLINE __m512i two_rows(const float* upper, int upper_count, const float* lower, int lower_count) {
    return rounded(load(upper, upper_count), load(lower, lower_count));
  }
  static HWY_INLINE __m512i two_rows(const uint16_t* upper, int upper_count, const uint16_t* lower, int lower_count) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(upper, upper_count)), half(lower, lower_count), 1);
  }
  static HWY_INLINE __m256i half(const uint16_t* from, int count) { return _mm256_maskz_loadu_epi16(mask_of(count), from); }
  static HWY_INLINE __m512 load(const float* from, int count) {
    return count >= 16 ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(mask_of(count), from);
  }
  static HWY_INLINE __mmask16 mask_of(int count) {
    return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count > 0 ? (1U << count) - 1 : 0);
  }
  static HWY_INLINE void store(__m512i words, uint32_t* to) { _mm512_storeu_si512(to, words); }

  /// Returns x and y rounded, x first.
  static HWY_INLINE __m512i rounded(__m512 x, __m512 y) { return (__m512i)_mm512_cvtne2ps_pbh(y, x); }

  /// Returns the order 0, 16, 1, 17, ...
  static HWY_INLINE __m512i interleaved_order() {
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_add_epi32(_mm512_or_si512(first, _mm512_slli_epi32(first, 16)), _mm512_set1_epi32(16 << 16));
  }
};

}  // namespace LACUNA_SIMD_NAMESPACE
}  // namespace lacuna::core
