#include "kernels/packed_product.h"

#include "kernels/intrinsics.h"
#include "kernels/packed_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

/// Writes w + i to `to` [kWidth] for each word i that is not 0; returns how many.
#ifdef __AVX512F__
LACUNA_INLINE int32_t append_nonzeros(WordVector words, int32_t w, int32_t* to) {
  const __mmask16 nonzero = _mm512_test_epi32_mask(words, words);
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(nonzero, words_from(static_cast<uint32_t>(w))));
  return __builtin_popcount(nonzero);
}
#else
LACUNA_INLINE int32_t append_nonzeros(WordVector words, int32_t w, int32_t* to) {
  const int zero = _mm256_movemask_ps((__m256)((Integers)words == 0));
  int32_t count = 0;
#pragma GCC unroll 8
  for (int i = 0; i < kWidth; ++i) {
    to[count] = w + i;
    count += ~zero >> i & 1;
  }
  return count;
}
#endif

LACUNA_INLINE WordVector repeated_word(const uint8_t* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return all_words(word);
}

/// Prefetches the panel's word kAhead words after this one.
LACUNA_INLINE void fetch_ahead(const uint8_t* panel) {
  constexpr int kAhead = 8;
  for (int line = 0; line < kPanel * 4; line += 64) _mm_prefetch(panel + kAhead * kPanel * 4 + line, _MM_HINT_T0);
}

// A Kind defines the numbers in a word, and writes the sums of kRows rows by a panel. Every sum is one chain of
// additions in the order of `words`, however many rows there are: a row's bits do not depend on it. Sums have the type
// that PanelResults takes: GCC 12 keeps them in memory if it changes after the loop.

/// Kind::add adds the products of two words to a sum. Twelve rows and two vectors of columns are 24 sums in registers,
/// with two vectors of the panel and a word of a row 27 of 32 (on AVX2 half as many rows, 15 of 16).
template <class Kind>
struct OfWords {
  static constexpr int kRowsAtOnce = kWidth == 16 ? 12 : 6;
  static constexpr int32_t kRowLevels = kAllRowLevels;
  static constexpr auto kFitShortSums = nullptr;

  template <int kRows>
  LACUNA_INLINE static void multiply(const uint8_t* x, const uint8_t* panel, int64_t words, const PanelResults& results) {
    typename Kind::Sums sums[kRows][2];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = typename Kind::Sums{};
    for (int64_t w = 0; w < words; ++w, panel += kPanel * 4) {
      const WordVector left = load(panel), right = load(panel + kWidth * 4);
      fetch_ahead(panel);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const WordVector of_row = repeated_word(x + (r * words + w) * 4);
        sums[r][0] = Kind::add(sums[r][0], of_row, left);
        sums[r][1] = Kind::add(sums[r][1], of_row, right);
      }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) results.write(half, kRows, [&](int r) { return sums[r][half]; });
  }
};

struct OfFloats : OfWords<OfFloats> {
  using Sums = Floats;
  LACUNA_INLINE static Sums add(Sums sums, WordVector x, WordVector panel) { return multiply_add((Floats)x, (Floats)panel, sums); }

  /// Computes these sums for a group of rows with many zeros from its `count` words that are not 0; the others would
  /// add 0.
  template <int kRows>
  LACUNA_INLINE static void multiply_nonzeros(const float* x, const float* panel, int64_t words, const int32_t* nonzeros, int32_t count,
                                              const PanelResults& results) {
    Floats sums[kRows][2];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = Floats{};
    for (int32_t i = 0; i < count; ++i) {
      const int64_t w = nonzeros[i];
      const Floats left = load(panel + w * kPanel), right = load(panel + w * kPanel + kWidth);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Floats of_row = repeated(x[r * words + w]);
        sums[r][0] = multiply_add(of_row, left, sums[r][0]);
        sums[r][1] = multiply_add(of_row, right, sums[r][1]);
      }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) results.write(half, kRows, [&](int r) { return sums[r][half]; });
  }
};

struct OfBf16 : OfWords<OfBf16> {
  using Sums = Floats;
  LACUNA_INLINE static Sums add(Sums sums, WordVector x, WordVector panel) {
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(sums, (__m512bh)x, (__m512bh)panel);
#else
    const WordVector high = all_words(0xffff0000);
    sums = multiply_add((Floats)((Integers)x << 16), (Floats)((Integers)panel << 16), sums);
    return multiply_add((Floats)(x & high), (Floats)(panel & high), sums);
#endif
  }
};

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
struct OfBytes : OfWords<OfBytes> {
  using Sums = Integers;
  LACUNA_INLINE static Sums add(Sums sums, WordVector x, WordVector panel) {
#ifdef __AVX512VNNI__
    return (Integers)_mm512_dpbusd_epi32((WordVector)sums, x, panel);
#else
    return (Integers)_mm256_dpbusd_avx_epi32((WordVector)sums, x, panel);
#endif
  }
};
#else
#ifdef __AVX512F__
LACUNA_INLINE WordVector products_in_pairs(WordVector a, WordVector b) {
  return _mm512_maddubs_epi16(a, b);
}
LACUNA_INLINE WordVector add_16_bits(WordVector a, WordVector b) {
  return _mm512_add_epi16(a, b);
}
LACUNA_INLINE Integers add_pairs(WordVector pairs, Integers sums) {
  return sums + (Integers)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
#else
LACUNA_INLINE WordVector products_in_pairs(WordVector a, WordVector b) {
  return _mm256_maddubs_epi16(a, b);
}
LACUNA_INLINE WordVector add_16_bits(WordVector a, WordVector b) {
  return _mm256_add_epi16(a, b);
}
LACUNA_INLINE Integers add_pairs(WordVector pairs, Integers sums) {
  return sums + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#endif

/// Sums products of bytes without instructions for it: they are summed in 16 bits over kWordsOfShortSum words, then in
/// 32. Eight rows' sums, the panel's words, ones and a short sum on its way take 13 of AVX2's 16 registers. With so
/// many levels rows and weights lose about as much as each other; four words are hardly faster, and weights then lose
/// more.
struct OfBytes {
  static constexpr int kRowsAtOnce = 8;
  static constexpr int32_t kRowLevels = 180, kWordsOfShortSum = 2, kLargestShortSum = 32767 / kRowLevels;

  template <int kRows>
  LACUNA_INLINE static void multiply(const uint8_t* x, const uint8_t* panel, int64_t words, const PanelResults& results) {
    for (int column = 0; column < kPanel; column += kWidth) {
      Integers sums[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r] = Integers{};
      for (int64_t w = 0; w < words; w += kWordsOfShortSum) {
        WordVector of_panel[kWordsOfShortSum];
#pragma GCC unroll 4
        for (int i = 0; i < kWordsOfShortSum; ++i) {
          const uint8_t* word = panel + (w + i) * kPanel * 4;
          of_panel[i] = load(word + column * 4);
          if (column == 0) fetch_ahead(word);
        }
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const uint8_t* row = x + (r * words + w) * 4;
          WordVector short_sums = products_in_pairs(repeated_word(row), of_panel[0]);
#pragma GCC unroll 4
          for (int i = 1; i < kWordsOfShortSum; ++i)
            short_sums = add_16_bits(short_sums, products_in_pairs(repeated_word(row + i * 4), of_panel[i]));
          sums[r] = add_pairs(short_sums, sums[r]);
        }
      }
      results.write(column / kWidth, kRows, [&](int r) { return sums[r]; });
    }
  }

  static void fit_short_sums(int8_t* row, int64_t words, float& scale) {
    const int32_t largest = largest_short_sum(row, words);
    if (largest <= kLargestShortSum) return;
    constexpr int32_t kRoundedUp = kWordsOfShortSum;  // a word has two bytes in a sum, each rounded up by a half at most
    const int32_t levels = kWeightLevels * (kLargestShortSum - kRoundedUp) / largest;
    const float factor = static_cast<float>(levels) / kWeightLevels;
    for (int64_t i = 0; i < 4 * words; ++i) row[i] = static_cast<int8_t>(__builtin_rintf(static_cast<float>(row[i]) * factor));
    scale /= factor;
  }
  static constexpr auto kFitShortSums = fit_short_sums;

 private:
  /// The most that the positive bytes of a short sum, or its negative ones, add up to.
  static int32_t largest_short_sum(const int8_t* row, int64_t words) {
    typedef int8_t Bytes __attribute__((vector_size(4 * kWidth)));
    typedef int16_t Shorts __attribute__((vector_size(4 * kWidth)));
    typedef uint64_t Longs __attribute__((vector_size(4 * kWidth)));
    static_assert(kWordsOfShortSum == 2);
    Shorts largest = {};
    for (int64_t w = 0; w < words; w += kWidth) {
      const auto bytes = (Bytes)load(row + 4 * w);
      for (const Bytes part : {bytes > 0 ? bytes : Bytes{}, bytes < 0 ? -bytes : Bytes{}}) {
        const auto pairs = (Shorts)products_in_pairs((WordVector)part, (WordVector)(Bytes{} + 1));
        const Shorts sums = pairs + (Shorts)((Longs)pairs >> 32);  // of a word and the next, and the next alone
        largest = sums > largest ? sums : largest;
      }
    }
    int32_t result = 0;
    for (int i = 0; i < 2 * kWidth; ++i) result = largest[i] > result ? largest[i] : result;
    return result;
  }
};
#endif

/// Multiplies the `rows` rows from `row` on, at most kRows.
template <class Kind, int kRows>
LACUNA_INLINE void multiply_tile(const PackedProduct& a, const uint8_t* packed, int64_t row, int64_t rows, PanelResults& results) {
  if constexpr (kRows > 1)
    if (rows < kRows) return multiply_tile<Kind, kRows - 1>(a, packed, row, rows, results);
  results.begin(row);
  Kind::template multiply<kRows>(static_cast<const uint8_t*>(a.x) + row * a.words * 4, packed, a.words, results);
  results.end(kRows);
}

/// Rows that lie a multiple of so many bytes apart share the lines of a way of the L1 cache; it holds kRowsPerWay of
/// them.
constexpr int64_t kBytesPerWay = 4096, kRowsPerWay = 8;

template <class Kind>
void multiply(const PackedProduct& a, int64_t panel, int64_t begin, int64_t end) {
  const uint8_t* packed = static_cast<const uint8_t*>(a.panels) + panel * a.words * kPanel * 4;
  PanelResults results(a, panel);
  const int64_t at_once = a.words * 4 % kBytesPerWay == 0 && Kind::kRowsAtOnce > kRowsPerWay ? kRowsPerWay : Kind::kRowsAtOnce;
  for (int64_t row = begin; row < end; row += at_once)
    multiply_tile<Kind, Kind::kRowsAtOnce>(a, packed, row, end - row < at_once ? end - row : at_once, results);
}

/// Multiplies the rows of a group, at most kRows.
template <int kRows>
LACUNA_INLINE void multiply_group(const PackedProduct& a, const float* packed, int64_t row, int64_t rows, PanelResults& results) {
  if constexpr (kRows > 1)
    if (rows < kRows) return multiply_group<kRows - 1>(a, packed, row, rows, results);
  const int64_t group = row / kRowsPerGroup;
  results.begin(row);
  OfFloats::multiply_nonzeros<kRows>(static_cast<const float*>(a.x) + row * a.words, packed, a.words, a.nonzeros + group * a.words,
                                     a.nonzero_counts[group], results);
  results.end(kRows);
}

void multiply_floats(const PackedProduct& a, int64_t panel, int64_t begin, int64_t end) {
  if (a.nonzeros == nullptr) return multiply<OfFloats>(a, panel, begin, end);
  const float* packed = static_cast<const float*>(a.panels) + panel * a.words * kPanel;
  PanelResults results(a, panel);
  for (int64_t row = begin; row < end; row += kRowsPerGroup) multiply_group<kRowsPerGroup>(a, packed, row, end - row, results);
}

void find_nonzeros(const NonzeroWords& a, int64_t first_group, int64_t last_group) {
  for (int64_t group = first_group; group < last_group; ++group) {
    const int64_t first = group * kRowsPerGroup, rows = a.rows - first < kRowsPerGroup ? a.rows - first : kRowsPerGroup;
    const float* x = a.x + first * a.words;
    int32_t *to = a.nonzeros + group * a.words, count = 0, w = 0;
    const auto words = static_cast<int32_t>(a.words);
    for (; w + kWidth <= words; w += kWidth) {
      WordVector bits = load(static_cast<const void*>(x + w));
      for (int64_t r = 1; r < rows; ++r) bits |= load(static_cast<const void*>(x + r * words + w));
      count += append_nonzeros(bits, w, to + count);
    }
    for (; w < words; ++w) {
      bool any = false;
      for (int64_t r = 0; r < rows; ++r) any |= x[r * words + w] != 0;
      to[count] = w;
      count += any;
    }
    a.counts[group] = count;
  }
}

template <class Kind>
constexpr PackedKernel kernel_of() {
  constexpr bool kIsFloats = std::is_same_v<Kind, OfFloats>;
  return {kTarget,
          kPanel,
          Kind::kRowLevels,
          kIsFloats ? multiply_floats : multiply<Kind>,
          to_words<Kind::kRowLevels>,
          kIsFloats ? find_nonzeros : nullptr,
          Kind::kFitShortSums};
}

}  // namespace

extern const PackedKernel kFloatKernel, kBf16Kernel, kBytesKernel;
constinit const PackedKernel kFloatKernel = kernel_of<OfFloats>();
constinit const PackedKernel kBf16Kernel = kernel_of<OfBf16>();
constinit const PackedKernel kBytesKernel = kernel_of<OfBytes>();

}  // namespace LACUNA_TARGET
}  // namespace lacuna
