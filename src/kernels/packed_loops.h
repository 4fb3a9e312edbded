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

inline constexpr int32_t kAllRowLevels = 255;  ///< of a row's bytes, where their products are summed in 32 bits

/// The largest number of a row and the magnitude of its smallest; 0, if there is none above, or below, zero.
struct RowRange {
  float above, below;
  float magnitude;  // the larger of both
};

/// What is not finite stays so: numbers above zero are in the order of their bits, and so are magnitudes of those below, with infinity and
/// what is not a number at the end.
LACUNA_INLINE RowRange range_of_row(const float* x, int64_t depth) {
  constexpr uint32_t kMinus = 0x80000000;
  int32_t above = 0;
  uint32_t top = kMinus;
#pragma omp simd reduction(max : above, top)
  for (int64_t i = 0; i < depth; ++i) {
    const auto bits = std::bit_cast<int32_t>(x[i]);
    const auto unsigned_bits = static_cast<uint32_t>(bits);
    above = bits > above ? bits : above;
    top = unsigned_bits > top ? unsigned_bits : top;
  }
  const auto below = static_cast<int32_t>(top - kMinus);
  return {std::bit_cast<float>(above), std::bit_cast<float>(below), std::bit_cast<float>(above > below ? above : below)};
}

/// Numbers as whole multiples of a step, so many from end to end.
struct Steps {
  float step;     // not a number, if the extent isn't finite
  float inverse;  // 0 then, and where all numbers are 0: there is nothing to multiply

  LACUNA_INLINE Steps(float extent, int32_t count) {
    const bool is_finite = extent < __builtin_inff(), is_zero = extent < 1e-30f;
    step = !is_finite ? __builtin_nanf("") : is_zero ? 0 : extent / static_cast<float>(count);
    inverse = !is_finite || is_zero ? 0 : static_cast<float>(count) / extent;
  }
  LACUNA_INLINE int32_t of(float x) const { return static_cast<int32_t>(__builtin_rintf(x * inverse)); }
};

/// to [numbers] = f(x), then zeros; all zeros, if there are no steps.
template <class Byte, class F>
LACUNA_INLINE void write_bytes(const float* x, int64_t depth, const Steps& steps, Byte* to, int64_t numbers, F f) {
  const int64_t count = steps.inverse > 0 ? depth : 0;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Byte>(f(x[i]));
  std::memset(to + count, 0, static_cast<size_t>(numbers - count));
}

/// to [numbers] = x in steps, the largest 127 or -127. Returns the step.
LACUNA_INLINE float quantise_weight(const float* x, int64_t depth, int8_t* to, int64_t numbers) {
  const Steps steps(range_of_row(x, depth).magnitude, kWeightLevels);
  write_bytes(x, depth, steps, to, numbers, [=](float number) { return steps.of(number); });
  return steps.step;
}

/// to [numbers] = x in steps + zero, from 0 to `levels`. Returns the step.
LACUNA_INLINE float quantise_row(const float* x, int64_t depth, uint8_t* to, int64_t numbers, int32_t levels, int32_t& zero) {
  const RowRange range = range_of_row(x, depth);
  const Steps steps(range.above + range.below, levels);
  const int32_t offset = steps.inverse > 0 ? steps.of(range.below) : 0;
  zero = offset;
  write_bytes(x, depth, steps, to, numbers, [=](float number) {
    const int32_t byte = steps.of(number) + offset;
    return byte < levels ? byte : levels;  // where both were rounded up
  });
  return steps.step;
}

template <int32_t kRowLevels>
void to_words(const RowsToWords& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.x + row * a.depth;
    void* to = static_cast<uint8_t*>(a.to) + row * a.words * 4;
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
        a.scales[row] = a.is_weight ? quantise_weight(x, a.depth, static_cast<int8_t*>(to), 4 * a.words)
                                    : quantise_row(x, a.depth, static_cast<uint8_t*>(to), 4 * a.words, kRowLevels, a.zeros[row]);
        break;
    }
  }
}

// ---- from sums to results ----

/// Calls f(end) with what becomes of a value of column i of the panel.
template <class F>
LACUNA_INLINE void with_end(const PackedProduct& a, const float* bias, F f) {
  const auto with_activation = [&](auto activation) {
    if (bias == nullptr) return f([=](float value, int64_t) { return activation(value); });
    f([=](float value, int64_t i) { return activation(value + bias[i]); });
  };
  switch (a.end) {
    case ProductEnd::kNone:
      return with_activation([](float value) { return value; });
    case ProductEnd::kRelu:
      return with_activation([](float value) { return relu(value); });
    case ProductEnd::kGelu:
      return with_activation([](float value) { return gelu(value); });
  }
}

/// The values of rows and a panel go where they belong; row_values(r)(i) is that of row r, counted from `row`, and of the panel's column i.
template <int kPanel, class F>
LACUNA_INLINE void finish_panel(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, F row_values) {
  const int64_t column = panel * kPanel, count = a.columns - column;
  with_end(a, a.bias == nullptr ? nullptr : a.bias + column, [&](auto end) {
    float* y = a.y + row * a.columns + column;
    for (int64_t r = 0; r < rows; ++r, y += a.columns) {
      const auto write = [=, value_of = row_values(r)](int64_t columns) {
        LACUNA_NO_OVERLAP
        for (int64_t i = 0; i < columns; ++i) y[i] = end(value_of(i), i);
      };
      count >= kPanel ? write(kPanel) : write(count);
    }
  });
}

/// From sums [rows, kPanel].
template <int kPanel>
[[gnu::noinline]] void finish_rows(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, const float* sums) {
  finish_panel<kPanel>(a, row, rows, panel, [=](int64_t r) { return [=, x = sums + r * kPanel](int64_t i) { return x[i]; }; });
}

/// From sums of bytes.
template <int kPanel>
[[gnu::noinline]] void finish_rows(const PackedProduct& a, int64_t row, int64_t rows, int64_t panel, const int32_t* sums) {
  const float* const column_scales = a.column_scales + panel * kPanel;
  const int32_t* const column_sums = a.column_sums + panel * kPanel;
  finish_panel<kPanel>(a, row, rows, panel, [=](int64_t r) {
    return [=, x = sums + r * kPanel, scale = a.row_scales[row + r], zero = a.row_zeros[row + r]](int64_t i) {
      return static_cast<float>(x[i] - zero * column_sums[i]) * (scale * column_scales[i]);
    };
  });
}

}  // namespace LACUNA_TARGET
}  // namespace lacuna
