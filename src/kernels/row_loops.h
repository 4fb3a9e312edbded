#pragma once

// Loops over one row. Included by sources that are compiled once for each instruction set: everything here is inlined there.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace LACUNA_TARGET {

#define LACUNA_INLINE [[gnu::always_inline]] inline

/// e^x for x <= 0; relative error about 2e-7.
LACUNA_INLINE float exponential(float x) {
  const float y = x * 1.44269504f < -126.f ? -126.f : x * 1.44269504f;  // NaN stays
  const float n = __builtin_floorf(y + .5f), f = y - n;
  float p = 1.33335581e-3f * f + 9.61812911e-3f;
  p = p * f + 5.55041087e-2f;
  p = p * f + 2.40226507e-1f;
  p = p * f + 6.93147181e-1f;
  p = p * f + 1.f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
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

/// The bits of x rounded to bf16, half-way cases to even.
LACUNA_INLINE uint16_t rounded_to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
LACUNA_INLINE float widened(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

template <class T>
LACUNA_INLINE T sum_of(const T* x, int64_t count) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

template <class T>
LACUNA_INLINE T max_of(const T* x, int64_t count) {
  T top = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < count; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

/// The sum of exp(x - top), left in `exps` where that is not null (it may be x).
template <class T>
LACUNA_INLINE T sum_of_exponentials(const T* x, int64_t count, T top, T* exps) {
  T total = 0;
  if (exps == nullptr) {  // NOLINT(bugprone-branch-clone): the branches differ under their pragmas
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < count; ++i) total += exponential(x[i] - top);
  } else {
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < count; ++i) {
      const T e = exponential(x[i] - top);
      exps[i] = e;
      total += e;
    }
  }
  return total;
}

/// Goes along ragged rows and gives the dropout factors of each, 128 features at a time.
///
/// Feature f of a row takes 16 bits of Philox block 16 (f / 128) + f % 16 at the row's position in its sentence: half-word f % 128 / 16. So
/// sixteen blocks side by side give the factors of 128 features in order.
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
  /// factors [128] of features 128 group and on: 0 or the scale.
  LACUNA_INLINE void factors(int64_t group, T* factors) const {
    const uint64_t id = static_cast<uint64_t>(dropout_.ids[sentence_]);
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    // As one vector: GCC 12 writes numbers that a loop makes one by one, and waits for them before it reads them back together.
    const Lanes blocks = Lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + static_cast<uint32_t>(group * kLanes);
    std::memcpy(c0, &blocks, sizeof blocks);
    for (int i = 0; i < kLanes; ++i) {
      c1[i] = static_cast<uint32_t>(row_ - dropout_.offsets[sentence_]);
      c2[i] = static_cast<uint32_t>(id);
      c3[i] = static_cast<uint32_t>(id >> 32);
    }
    philox_rounds(c0, c1, c2, c3);
    const uint32_t* words[] = {c0, c1, c2, c3};
    const T scale = static_cast<T>(dropout_.scale);
    for (int w = 0; w < 4; ++w)
      for (int i = 0; i < kLanes; ++i) {
        factors[2 * w * kLanes + i] = (words[w][i] & 0xffff) >= dropout_.threshold ? scale : T(0);
        factors[(2 * w + 1) * kLanes + i] = (words[w][i] >> 16) >= dropout_.threshold ? scale : T(0);
      }
  }

 private:
  using Lanes [[gnu::vector_size(kLanes * sizeof(uint32_t))]] = uint32_t;

  LACUNA_INLINE void philox_rounds(uint32_t* c0, uint32_t* c1, uint32_t* c2, uint32_t* c3) const {
    uint32_t k0 = static_cast<uint32_t>(dropout_.key), k1 = static_cast<uint32_t>(dropout_.key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round, k0 += kPhiloxKeyStep0, k1 += kPhiloxKeyStep1)
      for (int i = 0; i < kLanes; ++i) {
        const uint64_t first = uint64_t{kPhiloxFactor0} * c0[i], second = uint64_t{kPhiloxFactor2} * c2[i];
        const uint32_t n0 = static_cast<uint32_t>(second >> 32) ^ c1[i] ^ k0, n2 = static_cast<uint32_t>(first >> 32) ^ c3[i] ^ k1;
        c1[i] = static_cast<uint32_t>(second);
        c3[i] = static_cast<uint32_t>(first);
        c0[i] = n0;
        c2[i] = n2;
      }
  }

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
