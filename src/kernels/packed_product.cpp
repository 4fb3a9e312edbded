#include "kernels/packed_product.h"

#include "kernels/intrinsics.h"
#include "kernels/packed_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

#ifdef __AVX512F__
constexpr int kWidth = 16, kRowsAtOnce = 12;
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
#else
constexpr int kWidth = 8, kRowsAtOnce = 6;
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
#endif
constexpr int kPanel = 2 * kWidth, kAhead = 8;  // words between the panel's that are multiplied and those that are fetched
typedef int32_t Integers __attribute__((vector_size(4 * kWidth)));

// A Kind says what numbers are in words: what one word of the panel becomes in two vectors, for kColumns columns, what meets it of a row,
// kRowWords words, and what the two add to a vector of sums.

/// A word of the panel's is a lane of a vector, and so is the row's.
template <class SumOf>
struct OfWords {
  using Sum = SumOf;
  static constexpr int kColumns = kPanel, kRowWords = 1;

  LACUNA_INLINE static Words left(const uint8_t* panel) { return load(panel); }
  LACUNA_INLINE static Words right(const uint8_t* panel) { return load(panel + kWidth * 4); }
  LACUNA_INLINE static Words of_row(const uint8_t* x) {
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return repeated(word);
  }
  template <class Sums>
  LACUNA_INLINE static void store_sums(Sums left, Sums right, Sum* to) {
    store(to, left);
    store(to + kWidth, right);
  }
};

struct OfFloats : OfWords<float> {
  using Sums = Floats;
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) { return multiply_add(x, panel, sums); }
};

struct OfBf16 : OfWords<float> {
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

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
struct OfBytes : OfWords<int32_t> {
  using Sums = Words;
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) {
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(sums, x, panel);
#else
    return _mm256_dpbusd_avx_epi32(sums, x, panel);
#endif
  }
};
#else
/// Bytes as 16 bits each: no sum of two products is cut off. A row's lie so in memory, the panel's become so; a column then has two sums
/// side by side.
struct OfBytes {
  using Sum = int32_t;
  using Sums = Words;
  static constexpr int kColumns = kPanel / 2, kRowWords = 2;

#ifdef __AVX512F__
  LACUNA_INLINE static Words left(const uint8_t* panel) {
    return _mm512_cvtepi8_epi16(half(panel));
  }
  LACUNA_INLINE static Words right(const uint8_t* panel) {
    return _mm512_cvtepi8_epi16(half(panel + kWidth * 2));
  }
  LACUNA_INLINE static __m256i half(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  LACUNA_INLINE static Words of_row(const uint8_t* x) {
    return _mm512_set1_epi64(two_words(x));
  }
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(x, panel));
  }
  LACUNA_INLINE static void store_sums(Sums left, Sums right, Sum* to) {
    const auto pair_sums = [](Sums x) { return _mm512_cvtepi64_epi32(_mm512_add_epi32(x, _mm512_srli_epi64(x, 32))); };
    store(to, _mm512_inserti64x4(_mm512_castsi256_si512(pair_sums(left)), pair_sums(right), 1));
  }
#else
  LACUNA_INLINE static Words left(const uint8_t* panel) {
    return _mm256_cvtepi8_epi16(half(panel));
  }
  LACUNA_INLINE static Words right(const uint8_t* panel) {
    return _mm256_cvtepi8_epi16(half(panel + kWidth * 2));
  }
  LACUNA_INLINE static __m128i half(const uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  LACUNA_INLINE static Words of_row(const uint8_t* x) {
    return _mm256_set1_epi64x(two_words(x));
  }
  LACUNA_INLINE static Sums add(Sums sums, Words x, Words panel) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x, panel));
    asm("" : "+x"(sums));  // or GCC 12 makes all products first and keeps sums in memory
    return sums;
  }
  LACUNA_INLINE static void store_sums(Sums left, Sums right, Sum* to) {
    store(to, _mm256_permute4x64_epi64(_mm256_hadd_epi32(left, right), 0xD8));  // columns 0 1 4 5 2 3 6 7 in order
  }
#endif

 private:
  LACUNA_INLINE static int64_t two_words(const uint8_t* x) {
    int64_t words;
    __builtin_memcpy(&words, x, sizeof words);
    return words;
  }
};
#endif

// Twelve rows and two vectors of columns are 24 sums in registers, with two vectors of the panel and a word of a row 27 of 32 (on AVX2 half
// as many rows, 15 of 16). Every sum is one chain of additions in the order of `words`, however many rows the tile has: a row's bits do not
// depend on how many rows there are.
template <class Kind, int kRows>
LACUNA_INLINE void multiply_tile(const PackedProduct& a, const uint8_t* packed, int64_t panel, int64_t row) {
  constexpr int64_t kWordBytes = 4 * Kind::kRowWords;
  alignas(64) typename Kind::Sum values[kRows][kPanel];
  const uint8_t* const x = static_cast<const uint8_t*>(a.x) + row * a.words * kWordBytes;
  for (int column = 0; column < kPanel; column += Kind::kColumns) {
    typename Kind::Sums sums[kRows][2];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = typename Kind::Sums{};
    const uint8_t* words = packed + column * 4;
    for (int64_t w = 0; w < a.words; ++w, words += kPanel * 4) {
      const Words left = Kind::left(words), right = Kind::right(words);
      for (int line = 0; line < kPanel * 4; line += 64) _mm_prefetch(words + kAhead * kPanel * 4 + line, _MM_HINT_T0);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const Words of_row = Kind::of_row(x + (r * a.words + w) * kWordBytes);
        sums[r][0] = Kind::add(sums[r][0], of_row, left);
        sums[r][1] = Kind::add(sums[r][1], of_row, right);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) Kind::store_sums(sums[r][0], sums[r][1], values[r] + column);
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
  for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) multiply_tile<Kind, kRowsAtOnce>(a, packed, panel, row);
  if (row < end) multiply_rest<Kind, kRowsAtOnce - 1>(a, packed, panel, row, end - row);
}

#define LACUNA_TEXT_OF(name) #name
#define LACUNA_TEXT(name) LACUNA_TEXT_OF(name)

template <class Kind>
constexpr PackedKernel kernel_of() {
  return {LACUNA_TEXT(LACUNA_TARGET), kPanel, Kind::kRowWords, multiply<Kind>, to_words<Kind::kRowWords>};
}

}  // namespace

extern const PackedKernel kFloatKernel, kBf16Kernel, kBytesKernel;
constinit const PackedKernel kFloatKernel = kernel_of<OfFloats>();
constinit const PackedKernel kBf16Kernel = kernel_of<OfBf16>();
constinit const PackedKernel kBytesKernel = kernel_of<OfBytes>();

}  // namespace LACUNA_TARGET
}  // namespace lacuna
