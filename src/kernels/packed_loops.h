#pragma once

// Code that the packed products of all instruction sets share. Included by sources that are compiled once for each of
// them.

#include <cstring>
#include <type_traits>

#include "kernels/packed_product.h"
#include "kernels/row_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {

// ---- rows of floats to words ----

/// Writes x rounded to bf16, then zeros, to `to` [numbers].
LACUNA_INLINE void round_row(const float* x, int64_t depth, uint16_t* to, int64_t numbers) {
  for (int64_t i = 0; i < depth; ++i) to[i] = rounded_to_bf16(x[i]);
  for (int64_t i = depth; i < numbers; ++i) to[i] = 0;
}

inline constexpr int32_t kAllRowLevels = 255;  ///< of a row's bytes, where their products are summed in 32 bits

/// The largest number of a row and the magnitude of its smallest; 0, if there is none above, or below, zero.
struct RowRange {
  float above, below;
  float magnitude;  // the larger of both
};

/// Finds a row's range. Numbers that are not finite stay so: numbers above zero are in the order of their bits, and so
/// are magnitudes of those below, with infinity and what is not a number at the end.
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

/// Steps of equal size that divide an extent.
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

/// Writes f(x), then zeros, to `to` [numbers]; all zeros if there are no steps.
template <class Byte, class F>
LACUNA_INLINE void write_bytes(const float* x, int64_t depth, const Steps& steps, Byte* to, int64_t numbers, F f) {
  const int64_t count = steps.inverse > 0 ? depth : 0;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Byte>(f(x[i]));
  std::memset(to + count, 0, static_cast<size_t>(numbers - count));
}

/// Writes x in steps to `to` [numbers], the largest as 127 or -127. Returns the step.
LACUNA_INLINE float quantize_weight(const float* x, int64_t depth, int8_t* to, int64_t numbers) {
  const Steps steps(range_of_row(x, depth).magnitude, kWeightLevels);
  write_bytes(x, depth, steps, to, numbers, [=](float number) { return steps.of(number); });
  return steps.step;
}

/// Writes x in steps + zero to `to` [numbers], from 0 to `levels`. Returns the step.
LACUNA_INLINE float quantize_row(const float* x, int64_t depth, uint8_t* to, int64_t numbers, int32_t levels, int32_t& zero) {
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
    if (a.precision == Precision::kInt8) {
      a.scales[row] = a.is_weight ? quantize_weight(x, a.depth, static_cast<int8_t*>(to), 4 * a.words)
                                  : quantize_row(x, a.depth, static_cast<uint8_t*>(to), 4 * a.words, kRowLevels, a.zeros[row]);
    } else if (a.precision == Precision::kBf16) {
      round_row(x, a.depth, static_cast<uint16_t*>(to), 2 * a.words);
    } else {
      std::memcpy(to, x, static_cast<size_t>(a.depth) * sizeof *x);
    }
  }
}

// ---- from sums to results ----

namespace {

#ifdef __AVX512F__
typedef __m512 Floats;

LACUNA_INLINE WordVector load(const void* from) {
  return _mm512_loadu_si512(from);
}
LACUNA_INLINE Floats load(const float* from) {
  return _mm512_loadu_ps(from);
}
LACUNA_INLINE Floats repeated(float value) {
  return _mm512_set1_ps(value);
}
LACUNA_INLINE void store(float* to, Floats values) {
  _mm512_storeu_ps(to, values);
}
LACUNA_INLINE Floats multiply_add(Floats a, Floats b, Floats sum) {
  return _mm512_fmadd_ps(a, b, sum);
}
#else
typedef __m256 Floats;

LACUNA_INLINE WordVector load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
LACUNA_INLINE Floats load(const float* from) {
  return _mm256_loadu_ps(from);
}
LACUNA_INLINE Floats repeated(float value) {
  return _mm256_set1_ps(value);
}
LACUNA_INLINE void store(float* to, Floats values) {
  _mm256_storeu_ps(to, values);
}
LACUNA_INLINE Floats multiply_add(Floats a, Floats b, Floats sum) {
  return _mm256_fmadd_ps(a, b, sum);
}
#endif
typedef int32_t Integers __attribute__((vector_size(sizeof(WordVector))));
constexpr int kWidth = sizeof(WordVector) / sizeof(int32_t), kPanel = 2 * kWidth;

/// Writes the sums of a panel's columns, tile by tile, to the results.
///
///   begin(row); write(half, rows, sums) of both halves of the panel's columns; end(rows)
class PanelResults {
 public:
  LACUNA_INLINE PanelResults(const PackedProduct& a, int64_t panel)
      : a_(a), first_(panel * kPanel), columns_(a.columns - first_ < kPanel ? a.columns - first_ : kPanel), y_(a.y + first_) {
    if (a.bias != nullptr && is_whole()) {
      bias_ = a.bias + first_;
    } else {
      for (int i = 0; i < kPanel; ++i) own_bias_[i] = a.bias != nullptr && i < columns_ ? a.bias[first_ + i] : -0.f;  // x + -0 = x
      bias_ = own_bias_;
    }
  }

  LACUNA_INLINE void begin(int64_t row) {
    row_ = row;
    to_ = is_whole() ? y_ + row * a_.columns : edge_;
    stride_ = is_whole() ? a_.columns : kPanel;
  }
  /// sums(r): those of row r in half of the columns, as floats or, of bytes, as integers.
  template <class F>
  LACUNA_INLINE void write(int half, int rows, F sums) const {
    const int column = half * kWidth;
    const Floats bias = load(bias_ + column), least = repeated(a_.end == ProductEnd::kRelu ? 0 : -__builtin_inff());
    float* to = to_ + column;
    const auto finish = [=, stride = stride_](int r, Floats x) { store(to + r * stride, x < least ? least : x); };  // NaN stays
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(sums(0)[0])>, float>) {
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) finish(r, sums(r) + bias);
    } else {
      const Floats scales = load(a_.column_scales + first_ + column);
      const auto column_sums = (Integers)load(a_.column_sums + first_ + column);
      const int32_t* const zeros = a_.row_zeros + row_;
      const float* const row_scales = a_.row_scales + row_;
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const Integers above_zero = sums(r) - (Integers)all_words(static_cast<uint32_t>(zeros[r])) * column_sums;
        finish(r, multiply_add(__builtin_convertvector(above_zero, Floats), repeated(row_scales[r]) * scales, bias));
      }
    }
  }
  LACUNA_INLINE void end(int rows) const {
    if (a_.end == ProductEnd::kGelu) change(rows, [](float x) { return gelu(x); });
    if (a_.end == ProductEnd::kSwish) change(rows, [](float x) { return swish(x); });
    if (is_whole()) return;
    for (int r = 0; r < rows; ++r)
      for (int64_t i = 0; i < columns_; ++i) y_[(row_ + r) * a_.columns + i] = edge_[r * kPanel + i];
  }

 private:
  static constexpr int kMostRows = 32;  // of a tile

  LACUNA_INLINE bool is_whole() const {
    return columns_ == kPanel;
  }
  template <class F>
  LACUNA_INLINE void change(int rows, F f) const {
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < kPanel; ++i) to_[r * stride_ + i] = f(to_[r * stride_ + i]);
  }

  const PackedProduct& a_;
  const int64_t first_, columns_;  ///< of its columns, and how many there are
  float* const y_;
  const float* bias_;  ///< [kPanel]
  int64_t row_ = 0, stride_ = 0;
  float* to_ = nullptr;
  alignas(64) float own_bias_[kPanel];
  alignas(64) float edge_[kMostRows * kPanel];  ///< a tile of a panel of fewer columns
};

}  // namespace
}  // namespace LACUNA_TARGET
}  // namespace lacuna
