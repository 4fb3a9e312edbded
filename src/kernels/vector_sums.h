#pragma once

// Included only by sources that are compiled for AVX-512.

#include <immintrin.h>

#include <cstdint>

namespace lacuna {
namespace {

/// Factors whose products are summed, as words: of `steps` steps, `words` words each. Word w of row r is `rows[r * row + w]`, those of 32
/// columns are 16 each from `left[w * column]` and `right[w * column]`; a step lies `next_rows` and `next_columns` behind the last.
struct RowsByColumns {
  const uint32_t* rows;
  int64_t row;
  const uint32_t *left, *right;
  int64_t column;
  int64_t words, steps = 1, next_rows = 0, next_columns = 0;

  [[gnu::always_inline]] RowsByColumns from_row(int64_t first) const {
    RowsByColumns rest = *this;
    rest.rows += first * row;
    return rest;
  }
};

// What becomes of sums of products before they are written: finished(r, c, x) of row r and the 16 columns from c on.

/// Something is added: rows that lie `row` apart (0 = all are the same), or null = nothing.
struct FirstSums {
  const float* sums;
  int64_t row;

  [[gnu::always_inline]] FirstSums from_row(int64_t first) const { return {sums == nullptr ? nullptr : sums + first * row, row}; }
  [[gnu::always_inline]] __m512 finished(int64_t r, int64_t c, __m512 x) const {
    return sums == nullptr ? x : x + _mm512_loadu_ps(sums + r * row + c);
  }
};
/// They are multiplied.
struct SumsTimes {
  float factor;

  [[gnu::always_inline]] SumsTimes from_row(int64_t /*first*/) const { return *this; }
  [[gnu::always_inline]] __m512 finished(int64_t /*r*/, int64_t /*c*/, __m512 x) const { return x * factor; }
};

/// What a word of a row and 16 words of columns add: a word is two numbers of bf16 where this is compiled for AVX512-BF16, else a float.
[[gnu::always_inline]] inline __m512 multiply_add(__m512i row, __m512i columns, __m512 sums) {
#ifdef __AVX512BF16__
  return _mm512_dpbf16_ps(sums, (__m512bh)row, (__m512bh)columns);
#else
  return _mm512_fmadd_ps(_mm512_castsi512_ps(row), _mm512_castsi512_ps(columns), sums);
#endif
}

template <int kRows, class Finish>
[[gnu::noinline]] void sum_rows(const RowsByColumns& factors, Finish finish, float* to, int64_t to_row) {
  __m512 left[kRows], right[kRows];
#pragma GCC unroll 11
  for (int r = 0; r < kRows; ++r) {
    left[r] = right[r] = _mm512_setzero_ps();
    _mm_prefetch(to + r * to_row, _MM_HINT_T0);  // and first sums, which mostly lie there too: both are wanted at the end
    _mm_prefetch(to + r * to_row + 16, _MM_HINT_T0);
  }
  const int64_t row = factors.row, column = factors.column;
  for (int64_t s = 0; s < factors.steps; ++s) {
    constexpr int kFours = (kRows + 3) / 4;
    const uint32_t* fours[kFours];  // few registers address all rows
#pragma GCC unroll 3
    for (int i = 0; i < kFours; ++i) fours[i] = factors.rows + s * factors.next_rows + 4 * i * row;
    const uint32_t *left_columns = factors.left + s * factors.next_columns, *right_columns = factors.right + s * factors.next_columns;
    for (int64_t w = 0; w < factors.words; ++w, left_columns += column, right_columns += column) {
      const __m512i of_left = _mm512_loadu_si512(left_columns), of_right = _mm512_loadu_si512(right_columns);
#pragma GCC unroll 11
      for (int r = 0; r < kRows; ++r) {
        const __m512i word = _mm512_set1_epi32(static_cast<int>(fours[r / 4][r % 4 * row]));
        left[r] = multiply_add(word, of_left, left[r]);
        right[r] = multiply_add(word, of_right, right[r]);
      }
#pragma GCC unroll 3
      for (const uint32_t*& four : fours) ++four;
    }
  }
#pragma GCC unroll 11
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(to + r * to_row, finish.finished(r, 0, left[r]));
    _mm512_storeu_ps(to + r * to_row + 16, finish.finished(r, 16, right[r]));
  }
}

template <int kRows, class Finish>
[[gnu::always_inline]] inline void sum_up_to(int64_t count, const RowsByColumns& factors, Finish finish, float* to, int64_t to_row) {
  if (count >= kRows) return sum_rows<kRows>(factors, finish, to, to_row);
  if constexpr (kRows > 1) sum_up_to<kRows - 1>(count, factors, finish, to, to_row);
}

/// Sums [count, 32] of products, finished, rows `to_row` apart. Every sum of products is one chain over words: its bits do not depend on
/// `count`.
template <class Finish>
inline void sum_products(int64_t count, const RowsByColumns& factors, Finish finish, float* to, int64_t to_row) {
  constexpr int kMost = 11;  // rows at a time: 22 vectors of sums in registers, with two of columns and one of a word
  for (int64_t r = 0; r < count; r += kMost) sum_up_to<kMost>(count - r, factors.from_row(r), finish.from_row(r), to + r * to_row, to_row);
}

}  // namespace
}  // namespace lacuna
