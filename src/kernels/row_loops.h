#pragma once

// Loops over one row. Included by sources that are compiled once for each instruction set: everything here is inlined
// there.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/macros.h"
#include "base/random.h"
#include "kernels/intrinsics.h"
#include "kernels/philox_words.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace LACUNA_TARGET {

#define LACUNA_INLINE [[gnu::always_inline]] inline

#define LACUNA_TEXT_OF(name) #name
#define LACUNA_TEXT(name) LACUNA_TEXT_OF(name)
constexpr CpuTarget kTarget = cpu_target(LACUNA_TEXT(LACUNA_TARGET));
#undef LACUNA_TEXT
#undef LACUNA_TEXT_OF

/// Returns e^x for x <= 0; relative error below 3.5e-7 for x > -3 and 7e-7 for x > -8, as x log2(e) is rounded. The
/// polynomial is that of least relative error (2e-7) for 2^f, |f| <= 1/2, among those that are 1 at 0.
LACUNA_INLINE float exponential(float x) {
  const float y = x * 1.44269504f < -126.f ? -126.f : x * 1.44269504f;  // NaN stays
  constexpr float kWhole = 0x1.8p23f;  // a sum with it has no fraction, and its last bits are the whole number
  const float rounded = y + kWhole, f = y - (rounded - kWhole);
  float p = 1.338145663e-3f * f + 9.666368515e-3f;
  p = p * f + 5.550380532e-2f;
  p = p * f + 2.402234904e-1f;
  p = p * f + 6.931471809e-1f;
  p = p * f + 1.f;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(rounded) + 127) << 23);
}
LACUNA_INLINE double exponential(double x) {
  return __builtin_exp(x);
}

template <class T>
LACUNA_INLINE T relu(T x) {
  return x < 0 ? T(0) : x;  // NaN stays
}

template <class T>
LACUNA_INLINE T sigmoid(T x) {
  const T e = exponential(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

/// Returns Phi(x), the normal distribution function, given bell = e^(-x^2 / 2); absolute error about 3e-7 (Abramowitz &
/// Stegun 1964, 7.1.26).
LACUNA_INLINE float normal_distribution(float x, float bell) {
  const float t = 1.f / (1.f + .231641888f * (x < 0 ? -x : x));
  float p = 1.061405429f * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - .284496736f;
  p = p * t + .254829592f;
  const float tail = .5f * t * p * bell;
  return x < 0 ? tail : 1.f - tail;
}
LACUNA_INLINE double normal_distribution(double x, double /*bell*/) {
  return .5 * __builtin_erfc(-M_SQRT1_2 * x);
}

/// Returns x Phi(x); -0 for x = -infinity.
template <class T>
LACUNA_INLINE T gelu(T x) {
  constexpr T kLowest = std::numeric_limits<T>::lowest();
  const T y = x < kLowest ? kLowest : x;  // -infinity times 0 would be NaN; NaN stays
  return y * normal_distribution(y, exponential(T(-.5) * y * y));
}
template <class T>
LACUNA_INLINE T gelu_slope(T x) {
  constexpr T kFar = 40;  // from there on 0 and 1, to rounding
  x = x < -kFar ? -kFar : x > kFar ? kFar : x;
  const T bell = exponential(T(-.5) * x * x);
  return normal_distribution(x, bell) + x * bell * T(.5 * M_2_SQRTPI * M_SQRT1_2);
}

/// Returns x sigmoid(x). Far below 0 it is 0, to rounding, for -infinity too.
template <class T>
LACUNA_INLINE T swish(T x) {
  constexpr T kFar = sizeof(T) == sizeof(float) ? T(87) : T(708);  // e^kFar is still a number
  const T y = x < -kFar ? -kFar : x;                               // -infinity times 0 would be NaN; NaN stays
  return y * sigmoid(y);
}
template <class T>
LACUNA_INLINE T swish_slope(T x) {
  constexpr T kFar = 40;  // from there on 0 and 1, to rounding
  x = x < -kFar ? -kFar : x > kFar ? kFar : x;
  return sigmoid(x) * (T(1) + x * sigmoid(-x));
}

/// Returns the bits of x rounded to bf16, half-way cases to even; NaN stays.
LACUNA_INLINE uint16_t rounded_to_bf16(float x) {
  constexpr uint32_t kQuiet = 0x40, kInfinity = 0x7f800000;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const bool is_number = (bits & 0x7fffffff) <= kInfinity;
  return static_cast<uint16_t>(is_number ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | kQuiet);
}
LACUNA_INLINE float widened(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

template <class T>
LACUNA_INLINE uint16_t rounded(T x) {
  return rounded_to_bf16(static_cast<float>(x));
}

/// Returns a number as it is stored: unchanged, or rounded to bf16.
template <class Stored, class T>
LACUNA_INLINE Stored stored(T x) {
  if constexpr (std::is_same_v<Stored, T>) {
    return x;
  } else {
    return rounded(x);
  }
}

/// Returns the number that was stored.
template <class T, class Stored>
LACUNA_INLINE T loaded(Stored x) {
  if constexpr (std::is_same_v<Stored, T>) {
    return x;
  } else {
    return static_cast<T>(widened(x));
  }
}

/// Returns combine(f(0), f(1), ..., f(count - 1)), combined in lanes and then by halves; `none` if count is 0.
template <class T, class F, class Combine>
LACUNA_INLINE T reduced(int64_t count, T none, F f, Combine combine) {
  constexpr int kLanes = 128 / sizeof(T);
  T lanes[kLanes];
  for (T& lane : lanes) lane = none;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    LACUNA_NO_OVERLAP
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], f(i + lane));
  }
#pragma GCC unroll 5
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + half]);
  T result = lanes[0];
  for (; i < count; ++i) result = combine(result, f(i));
  return result;
}

/// Returns the sum of f(i).
template <class T, class F>
LACUNA_INLINE T sum_over(int64_t count, F f) {
  return reduced(count, T(0), f, [](T a, T b) { return a + b; });
}

template <class T>
LACUNA_INLINE T sum_of(const T* x, int64_t count) {
  return sum_over<T>(count, [=](int64_t i) { return x[i]; });
}

/// Returns the largest number; NaN is ignored.
template <class T>
LACUNA_INLINE T max_of(const T* x, int64_t count) {
  const auto at = [=](int64_t i) { return x[i]; };
  return reduced(count, -std::numeric_limits<T>::infinity(), at, [](T top, T value) { return value > top ? value : top; });
}

/// Returns the sum of exp(x - top), and writes the terms to `exps` unless that is null (it may be x).
template <class T>
LACUNA_INLINE T sum_of_exponentials(const T* x, int64_t count, T top, T* exps) {
  if (exps == nullptr) return sum_over<T>(count, [=](int64_t i) { return exponential(x[i] - top); });
  return sum_over<T>(count, [=](int64_t i) { return exps[i] = exponential(x[i] - top); });
}

#ifdef __AVX512F__
LACUNA_INLINE WordVector words_from(uint32_t first) {
  return _mm512_add_epi32(all_words(first), _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}
LACUNA_INLINE void store_words(WordVector x, uint32_t* to) {
  _mm512_storeu_si512(to, x);
}
#else
LACUNA_INLINE WordVector words_from(uint32_t first) {
  return _mm256_add_epi32(all_words(first), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
LACUNA_INLINE void store_words(WordVector x, uint32_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}
#endif

/// An iterator over ragged rows that returns the dropout factors of each, 128 features at a time: those of sixteen
/// Philox blocks side by side, by the rule of dropout_factors.h.
template <class T>
class DropoutCursor {
 public:
  static constexpr int kLanes = 16, kGroup = 128;

  LACUNA_INLINE DropoutCursor(const DropoutRows& dropout, int64_t row) : dropout_(dropout), row_(row) {
    while (is_active() && dropout.offsets[sentence_ + 1] <= row) ++sentence_;
  }
  LACUNA_INLINE bool is_active() const { return dropout_.threshold > 0; }
  LACUNA_INLINE void next_row() {
    ++row_;
    while (is_active() && sentence_ + 1 < dropout_.sentences && dropout_.offsets[sentence_ + 1] <= row_) ++sentence_;
  }
  /// Sets factors [128] of the features from 128 group on: 0 or the scale.
  LACUNA_INLINE void factors(int64_t group, T* factors) const {
    alignas(64) uint32_t words[4][kLanes];
    constexpr int kBlocks = sizeof(WordVector) / sizeof(uint32_t);
    const auto position = static_cast<uint32_t>(row_ - dropout_.offsets[sentence_]);
    const auto id = static_cast<uint64_t>(dropout_.ids[sentence_]);
    for (int block = 0; block < kLanes; block += kBlocks) {
      WordVector drawn[4] = {words_from(static_cast<uint32_t>(group * kLanes + block)), all_words(position),
                             all_words(static_cast<uint32_t>(id)), all_words(static_cast<uint32_t>(id >> 32))};
      make_philox(dropout_.key, drawn);
      for (int w = 0; w < 4; ++w) store_words(drawn[w], words[w] + block);
    }
    const T scale = static_cast<T>(dropout_.scale);
    for (int w = 0; w < 4; ++w)
      for (int i = 0; i < kLanes; ++i) {
        factors[2 * w * kLanes + i] = (words[w][i] & 0xffff) >= dropout_.threshold ? scale : T(0);
        factors[(2 * w + 1) * kLanes + i] = (words[w][i] >> 16) >= dropout_.threshold ? scale : T(0);
      }
  }

 private:
  const DropoutRows& dropout_;
  int64_t row_, sentence_ = 0;
};

/// Calls f(i, factor) for each feature i of the cursor's row.
template <class T, class F>
LACUNA_INLINE void for_each_dropped(const DropoutCursor<T>& cursor, int64_t columns, F f) {
  if (!cursor.is_active()) {
    for (int64_t i = 0; i < columns; ++i) f(i, T(1));
    return;
  }
  constexpr int64_t kGroup = DropoutCursor<T>::kGroup;
  for (int64_t begin = 0; begin < columns; begin += kGroup) {
    alignas(64) T factors[kGroup];
    cursor.factors(begin / kGroup, factors);
    const int64_t count = columns - begin < kGroup ? columns - begin : kGroup;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) f(begin + i, factors[i]);
  }
}

}  // namespace LACUNA_TARGET
}  // namespace lacuna
