#pragma once

// What the packed products of all instruction sets share. Included by sources that are compiled once for each of them.

#include <cstring>

#include "base/no_overlap.h"
#include "kernels/packed_product.h"
#include "kernels/row_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {

// ---- rows of floats to words ----

/// to [numbers] of a word's numbers: x rounded, then zeros.
LACUNA_INLINE void round_row(const float* x, int64_t depth, uint16_t* to, int64_t numbers) {
  for (int64_t i = 0; i < depth; ++i) to[i] = rounded_to_bf16(x[i]);
  for (int64_t i = depth; i < numbers; ++i) to[i] = 0;
}

/// What rounding left behind, rounded.
LACUNA_INLINE void round_rest_of_row(const float* x, int64_t depth, uint16_t* to, int64_t numbers) {
  for (int64_t i = 0; i < depth; ++i) to[i] = rounded_to_bf16(x[i] - widened(rounded_to_bf16(x[i])));
  for (int64_t i = depth; i < numbers; ++i) to[i] = 0;
}

/// Rows are high, low, high and weights high, high, low: side by side the three products of kBf16x3.
LACUNA_INLINE void split_row(const float* x, int64_t depth, uint16_t* to, int64_t numbers, bool is_weight) {
  const int64_t third = numbers / 3;
  round_row(x, depth, to, third);
  std::memcpy(to + (is_weight ? 1 : 2) * third, to, static_cast<size_t>(third) * sizeof *to);
  round_rest_of_row(x, depth, to + (is_weight ? 2 : 1) * third, third);
}

/// x as bytes, or as bytes in 16 bits each, the largest 127 or -127; a row's are 128 larger. Returns the scale; not a number, if x holds
/// something that is none.
template <class Byte>
LACUNA_INLINE float quantise_row(const float* x, int64_t depth, Byte* to, int64_t numbers, int32_t offset) {
  constexpr int32_t kNotFinite = 0x7f800000;
  int32_t top = 0;  // bits of |x| are in the order of |x|, with what is not finite above all
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < depth; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
    top = bits > top ? bits : top;
  }
  const float largest = std::bit_cast<float>(top), inverse = top < kNotFinite && largest > 1e-30f ? 127 / largest : 0;
  for (int64_t i = 0; i < depth; ++i)
    to[i] = static_cast<Byte>(inverse > 0 ? static_cast<int32_t>(__builtin_rintf(x[i] * inverse)) + offset : offset);
  for (int64_t i = depth; i < numbers; ++i) to[i] = 0;
  return top < kNotFinite ? (inverse > 0 ? largest / 127 : 0) : __builtin_nanf("");
}

template <int kRowWords>
void to_words(const RowsToWords& a, int64_t begin, int64_t end) {
  const int64_t words = a.is_weight ? a.words : kRowWords * a.words;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.x + row * a.depth;
    void* to = static_cast<uint8_t*>(a.to) + row * words * 4;
    switch (a.format) {
      case WeightFormat::kFloat:
        std::memcpy(to, x, static_cast<size_t>(a.depth) * sizeof *x);
        break;
      case WeightFormat::kBf16x3:
        split_row(x, a.depth, static_cast<uint16_t*>(to), 2 * a.words, a.is_weight);
        break;
      case WeightFormat::kBf16:
        round_row(x, a.depth, static_cast<uint16_t*>(to), 2 * a.words);
        break;
      case WeightFormat::kInt8:
        a.scales[row] = a.is_weight      ? quantise_row(x, a.depth, static_cast<uint8_t*>(to), 4 * a.words, 0)
                        : kRowWords == 1 ? quantise_row(x, a.depth, static_cast<uint8_t*>(to), 4 * a.words, 128)
                                         : quantise_row(x, a.depth, static_cast<uint16_t*>(to), 4 * a.words, 128);
        break;
    }
  }
}

// ---- from sums to results ----

LACUNA_INLINE float gelu(float x) {
  return .5f * x * (1.f + __builtin_erff(x * .707106781f));
}

/// y = the activation of value_of(i) + bias in `count` columns of a row, each read and written once.
template <class F>
LACUNA_INLINE void finish_columns(const PackedProduct& a, int64_t row, int64_t column, int64_t count, F value_of) {
  const auto write = [=, y = a.y + row * a.columns + column](auto f) {
    LACUNA_NO_OVERLAP
    for (int64_t i = 0; i < count; ++i) y[i] = f(i);
  };
  const auto activate = [=, end = a.end](auto f) {
    switch (end) {
      case ProductEnd::kNone:
        return write(f);
      case ProductEnd::kRelu:
        return write([=](int64_t i) { return relu(f(i)); });
      case ProductEnd::kGelu:
        return write([=](int64_t i) { return gelu(f(i)); });
    }
  };
  if (a.bias == nullptr) return activate(value_of);
  activate([=, bias = a.bias + column](int64_t i) { return value_of(i) + bias[i]; });
}

/// The values of rows and a panel go where they belong; row_values(r)(i) is that of row r, counted from `row`, and of the panel's column i.
template <int kPanel, class F>
LACUNA_INLINE void finish_panel(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, F row_values) {
  const int64_t column = panel * kPanel, count = a.columns - column;
  for (int64_t r = 0; r < rows; ++r) {
    if (count >= kPanel) {
      finish_columns(a, row + r, column, kPanel, row_values(r));
    } else {
      finish_columns(a, row + r, column, count, row_values(r));
    }
  }
}

/// The same from sums [rows, kPanel].
template <int kPanel>
[[gnu::noinline]] void finish_rows(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, const float* sums) {
  finish_panel<kPanel>(a, row, rows, panel, [=](int64_t r) { return [=, x = sums + r * kPanel](int64_t i) { return x[i]; }; });
}

/// From sums of bytes.
template <int kPanel>
[[gnu::noinline]] void finish_rows(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, const int32_t* sums) {
  const float* const column_scales = a.column_scales + panel * kPanel;
  const int32_t* const offsets = a.column_offsets + panel * kPanel;
  finish_panel<kPanel>(a, row, rows, panel, [=](int64_t r) {
    return [=, x = sums + r * kPanel, scale = a.row_scales[row + r]](int64_t i) {
      return static_cast<float>(x[i] - offsets[i]) * (scale * column_scales[i]);
    };
  });
}

}  // namespace LACUNA_TARGET
}  // namespace lacuna
