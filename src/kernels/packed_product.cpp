#include "kernels/packed_product.h"

#include <immintrin.h>

#include "kernels/packed_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

#ifdef __AVX512F__
constexpr int kWidth = 16, kTileRows = 12;
typedef __m512 Floats;
typedef __m512i Words;

LACUNA_INLINE Words load(const uint8_t* from) {
  return _mm512_loadu_si512(from);
}
LACUNA_INLINE Words repeated(int32_t word) {
  return _mm512_set1_epi32(word);
}
LACUNA_INLINE void store(float* to, Floats values) {
  _mm512_store_ps(to, values);
}
LACUNA_INLINE void store(int32_t* to, Words values) {
  _mm512_store_si512(to, values);
}
LACUNA_INLINE Floats multiply_add(Words a, Words b, Floats sum) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}
[[maybe_unused]] LACUNA_INLINE Words multiply_add_pairs(Words a, Words b) {
  return _mm512_madd_epi16(a, b);
}
#else
constexpr int kWidth = 8, kTileRows = 6;
typedef __m256 Floats;
typedef __m256i Words;

LACUNA_INLINE Words load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
LACUNA_INLINE Words repeated(int32_t word) {
  return _mm256_set1_epi32(word);
}
LACUNA_INLINE void store(float* to, Floats values) {
  _mm256_store_ps(to, values);
}
LACUNA_INLINE void store(int32_t* to, Words values) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), values);
}
LACUNA_INLINE Floats multiply_add(Words a, Words b, Floats sum) {
  return _mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sum);
}
[[maybe_unused]] LACUNA_INLINE Words multiply_add_pairs(Words a, Words b) {
  return _mm256_madd_epi16(a, b);
}
#endif
constexpr int kPanel = 2 * kWidth, kAhead = 8;  // words between the panel's that are multiplied and those that are fetched
typedef int32_t Integers __attribute__((vector_size(4 * kWidth)));
typedef int16_t Halves __attribute__((vector_size(4 * kWidth)));

// What a word of a row and a vector of a panel's words add to a vector of sums.

struct OfFloats {
  using Sum = float;
  using Sums = Floats;
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) { return multiply_add(x, panel, sums); }
};

struct OfBf16 {
  using Sum = float;
  using Sums = Floats;
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) {
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(sums, (__m512bh)x, (__m512bh)panel);
#else
    const Words high = repeated(static_cast<int32_t>(0xffff0000));
    sums = multiply_add((Words)((Integers)x << 16), (Words)((Integers)panel << 16), sums);
    return multiply_add(x & high, panel & high, sums);
#endif
  }
};

struct OfBytes {
  using Sum = int32_t;
  using Sums = Words;
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) {
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sums, x, panel);
#elif defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sums, x, panel);
#else  // even and odd bytes as 16 bits each: no sum of two products is cut off
    const Words even = multiply_add_pairs(x & repeated(0x00ff00ff), (Words)((Halves)panel << 8 >> 8));
    const Words odd = multiply_add_pairs((Words)((Integers)x >> 8) & repeated(0x00ff00ff), (Words)((Halves)panel >> 8));
    return (Words)((Integers)sums + (Integers)even + (Integers)odd);
#endif
  }
};

// Twelve rows and two vectors of columns are 24 sums in registers, with two vectors of the panel and a word of a row 27 of 32 (on AVX2 half
// as many rows, 15 of 16). Every sum is one chain of additions in the order of `words`, however many rows the tile has: a row's bits do not
// depend on how many rows there are.
template <class Kind, int kRows>
LACUNA_INLINE void multiply_tile(const PackedProduct& a, const uint8_t* packed, int64_t panel, int64_t row) {
  typename Kind::Sums sums[kRows][2];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = typename Kind::Sums{};
  const uint8_t* x = static_cast<const uint8_t*>(a.x) + row * a.words * 4;
  for (int64_t w = 0; w < a.words; ++w, packed += kPanel * 4) {
    const Words left = load(packed), right = load(packed + kWidth * 4);
    for (int line = 0; line < kPanel * 4; line += 64) _mm_prefetch(packed + kAhead * kPanel * 4 + line, _MM_HINT_T0);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      int32_t word;
      __builtin_memcpy(&word, x + (r * a.words + w) * 4, sizeof word);
      sums[r][0] = Kind::add(sums[r][0], repeated(word), left);
      sums[r][1] = Kind::add(sums[r][1], repeated(word), right);
    }
  }
  alignas(64) typename Kind::Sum values[kRows][kPanel];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    store(values[r], sums[r][0]);
    store(values[r] + kWidth, sums[r][1]);
  }
  finish_rows<kPanel>(a, row, kRows, panel, values[0]);
}

template <class Kind, int kRows>
LACUNA_INLINE void multiply_rest(const PackedProduct& a, const uint8_t* packed, int64_t panel, int64_t row, int64_t rows) {
  if (rows == kRows) return multiply_tile<Kind, kRows>(a, packed, panel, row);
  if constexpr (kRows > 1) multiply_rest<Kind, kRows - 1>(a, packed, panel, row, rows);
}

template <class Kind>
void multiply(const PackedProduct& a, int64_t panel, int64_t begin, int64_t end) {
  const uint8_t* packed = static_cast<const uint8_t*>(a.panels) + panel * a.words * kPanel * 4;
  int64_t row = begin;
  for (; row + kTileRows <= end; row += kTileRows) multiply_tile<Kind, kTileRows>(a, packed, panel, row);
  if (row < end) multiply_rest<Kind, kTileRows - 1>(a, packed, panel, row, end - row);
}

#define LACUNA_TEXT_OF(name) #name
#define LACUNA_TEXT(name) LACUNA_TEXT_OF(name)

constexpr PackedKernel kernel_with(void (*multiply)(const PackedProduct&, int64_t, int64_t, int64_t)) {
  return {LACUNA_TEXT(LACUNA_TARGET), kPanel, multiply, to_words};
}

}  // namespace

extern const PackedKernel kFloatKernel, kBf16Kernel, kBytesKernel;
constinit const PackedKernel kFloatKernel = kernel_with(multiply<OfFloats>);
constinit const PackedKernel kBf16Kernel = kernel_with(multiply<OfBf16>);
constinit const PackedKernel kBytesKernel = kernel_with(multiply<OfBytes>);

}  // namespace LACUNA_TARGET
}  // namespace lacuna
