#pragma once

// Included by sources that are compiled once for each instruction set, AVX2 at least, in namespaces that none of them
// shares.

#include <cstdint>

#include "kernels/intrinsics.h"

namespace lacuna {
namespace {

// A vector of sums, and how many rows of two such vectors stay in registers with two vectors of columns and one of a
// word.
#ifdef __AVX512F__
typedef __m512 Sums;
constexpr int kLanes = 16, kMostRows = 11;

[[gnu::always_inline]] inline Sums load_sums(const float* from) {
  return _mm512_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_sums(Sums x, float* to) {
  _mm512_storeu_ps(to, x);
}
/// Adds the products of a word and of a vector of words: a word is two numbers of bf16 where this is compiled for
/// AVX512-BF16, else a float.
[[gnu::always_inline]] inline Sums multiply_add(uint32_t word, const uint32_t* words, Sums sums) {
  const __m512i left = _mm512_set1_epi32(static_cast<int>(word)), right = _mm512_loadu_si512(words);
#ifdef __AVX512BF16__
  return _mm512_dpbf16_ps(sums, (__m512bh)left, (__m512bh)right);
#else
  return _mm512_fmadd_ps(_mm512_castsi512_ps(left), _mm512_castsi512_ps(right), sums);
#endif
}
#else
typedef __m256 Sums;
constexpr int kLanes = 8, kMostRows = 6;

[[gnu::always_inline]] inline Sums load_sums(const float* from) {
  return _mm256_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_sums(Sums x, float* to) {
  _mm256_storeu_ps(to, x);
}
[[gnu::always_inline]] inline Sums multiply_add(uint32_t word, const uint32_t* words, Sums sums) {
  return _mm256_fmadd_ps(_mm256_set1_ps(__builtin_bit_cast(float, word)), _mm256_loadu_ps(reinterpret_cast<const float*>(words)), sums);
}
#endif

/// Factors whose products are summed, as words. Word w of row r is `rows[r * row + w]`, those of 32 columns are 16 each
/// from `left[w * column]` and `right[w * column]`.
struct RowsByColumns {
  const uint32_t* rows;
  int64_t row;
  const uint32_t *left, *right;
  int64_t column;
  int64_t words;

  /// Returns the first words of this column and of those beside it, up to 16.
  [[gnu::always_inline]] const uint32_t* of_column(int c) const { return c < 16 ? left + c : right + (c - 16); }
  [[gnu::always_inline]] RowsByColumns from_row(int64_t first) const {
    RowsByColumns rest = *this;
    rest.rows += first * row;
    return rest;
  }
};

// A Finish changes sums of products before they are written: finished(r, c, x) is for row r and the kLanes columns from
// c on.

/// Adds first sums: rows that lie `row` apart (0 = all are the same); null = nothing is added.
struct FirstSums {
  const float* sums;
  int64_t row;

  [[gnu::always_inline]] FirstSums from_row(int64_t first) const { return {sums == nullptr ? nullptr : sums + first * row, row}; }
  [[gnu::always_inline]] Sums finished(int64_t r, int64_t c, Sums x) const {
    return sums == nullptr ? x : x + load_sums(sums + r * row + c);
  }
};
/// Multiplies the sums.
struct SumsTimes {
  float factor;

  [[gnu::always_inline]] SumsTimes from_row(int64_t /*first*/) const { return *this; }
  [[gnu::always_inline]] Sums finished(int64_t /*r*/, int64_t /*c*/, Sums x) const { return x * factor; }
};

/// Computes the sums of kRows rows and of two vectors of columns from `first` on.
template <int kRows, class Finish>
[[gnu::noinline]] void sum_products_of_rows(const RowsByColumns& factors, int first, Finish finish, float* to, int64_t to_row) {
  Sums left[kRows], right[kRows];
#pragma GCC unroll 11
  for (int r = 0; r < kRows; ++r) {
    left[r] = right[r] = Sums{};
    _mm_prefetch(to + r * to_row + first, _MM_HINT_T0);  // and first sums, which mostly lie there too: both are wanted at the end
    if (kLanes == 16) _mm_prefetch(to + r * to_row + first + kLanes, _MM_HINT_T0);
  }
  const int64_t row = factors.row, column = factors.column;
  constexpr int kFours = (kRows + 3) / 4;
  const uint32_t* fours[kFours];  // few registers address all rows
#pragma GCC unroll 3
  for (int i = 0; i < kFours; ++i) fours[i] = factors.rows + 4 * i * row;
  const uint32_t *left_columns = factors.of_column(first), *right_columns = factors.of_column(first + kLanes);
  for (int64_t w = 0; w < factors.words; ++w, left_columns += column, right_columns += column) {
#pragma GCC unroll 11
    for (int r = 0; r < kRows; ++r) {
      const uint32_t word = fours[r / 4][r % 4 * row];
      left[r] = multiply_add(word, left_columns, left[r]);
      right[r] = multiply_add(word, right_columns, right[r]);
    }
#pragma GCC unroll 3
    for (const uint32_t*& four : fours) ++four;
  }
#pragma GCC unroll 11
  for (int r = 0; r < kRows; ++r) {
    store_sums(finish.finished(r, first, left[r]), to + r * to_row + first);
    store_sums(finish.finished(r, first + kLanes, right[r]), to + r * to_row + first + kLanes);
  }
}

/// Sums `count` rows, from 1 to kRows, as sum_products_of_rows does.
template <int kRows, class Finish>
[[gnu::always_inline]] inline void sum_up_to(int64_t count, const RowsByColumns& factors, int first, Finish finish, float* to,
                                             int64_t to_row) {
  if (count >= kRows) return sum_products_of_rows<kRows>(factors, first, finish, to, to_row);
  if constexpr (kRows > 1) sum_up_to<kRows - 1>(count, factors, first, finish, to, to_row);
}

/// Sums [count, 32] of products, finished, rows `to_row` apart. Every sum of products is one chain over words: its bits
/// do not depend on `count`.
template <class Finish>
inline void sum_products(int64_t count, const RowsByColumns& factors, Finish finish, float* to, int64_t to_row) {
  for (int first = 0; first < 32; first += 2 * kLanes) {
    int64_t groups = (count + kMostRows - 1) / kMostRows;
    for (int64_t r = 0; r < count; --groups) {  // groups of much the same size: each addition waits for the one before in its chain
      const int64_t rows = (count - r + groups - 1) / groups;
      sum_up_to<kMostRows>(rows, factors.from_row(r), first, finish.from_row(r), to + r * to_row, to_row);
      r += rows;
    }
  }
}

}  // namespace
}  // namespace lacuna
