#pragma once

#include <cstdint>

/// Products of two matrices, neither of which lasts: both are laid out in blocks on the way. Plain data between product_in_blocks.cpp and
/// loops that are compiled once for each instruction set.
namespace lacuna {

// What the factors' numbers become: words of 32 bits.

/// bf16 (as bits), two in a word.
struct Bf16Factor {
  using Number = uint16_t;
  static constexpr int64_t kNumbersInWord = 2, kParts = 1;
};
/// The sum of two numbers of bf16, high + low, of which the product is taken as low high + high high + high low: what is left out is at
/// most 2^-15 of the size of the product.
struct Bf16x3Factor {
  using Number = float;
  static constexpr int64_t kNumbersInWord = 2, kParts = 2;
};
struct FloatFactor {
  using Number = float;
  static constexpr int64_t kNumbersInWord = 1, kParts = 1;
};

/// One of the strides is 1.
template <class Number>
struct StridedMatrix {
  const Number* data;
  int64_t row, column;
};

/// c [rows, columns] = or, with `add`, += a [rows, depth] x b [depth, columns], plus `bias` [columns] in each row, unless that is null.
/// Sums are taken in the order of depth, in parts of kDepthBlock: their bits do not depend on threads, nor on how many rows and columns
/// there are.
template <class Factor>
struct BlockProduct {
  int64_t rows, columns, depth;
  StridedMatrix<typename Factor::Number> a, b;
  int64_t c_row;
  bool add;  ///< without a bias
  const float* bias;
  uint32_t* panels;  ///< room for b: panel_words(), or deep_panel_words()
};

inline constexpr int64_t kBlock = 32;               ///< rows of a, and columns of b in a panel
inline constexpr int64_t kWordsInDepthBlock = 256;  ///< so deep a block of rows stays in the first cache while all panels pass
inline constexpr int64_t kWordsInStep = 16;         ///< what is laid out at a time
template <class Factor>
inline constexpr int64_t kDepthBlock = kWordsInDepthBlock / Factor::kParts* Factor::kNumbersInWord;

// Always inlined: code of this header must not come from the sources that need special instructions.

[[gnu::always_inline]] inline int64_t blocks_in(int64_t size) {
  return (size + kBlock - 1) / kBlock;
}
template <class Factor>
[[gnu::always_inline]] inline int64_t panel_words(const BlockProduct<Factor>& product) {
  constexpr int64_t kStep = kWordsInStep * Factor::kNumbersInWord;
  return blocks_in(product.columns) * kBlock * ((product.depth + kStep - 1) / kStep) * kWordsInStep * Factor::kParts;
}

/// Of one block of depths.
template <class Factor>
[[gnu::always_inline]] inline int64_t deep_panel_words(const BlockProduct<Factor>& product) {
  return blocks_in(product.columns) * kBlock * kWordsInDepthBlock;
}

/// One way to multiply.
template <class Factor>
struct BlockKernel {
  /// Panels begin to end - 1 of b; to be done for all before the first row.
  void (*pack_panels)(const BlockProduct<Factor>&, int64_t begin, int64_t end);
  /// Blocks begin to end - 1 of the rows of c; `rows` is where the first of them belongs.
  void (*multiply_rows)(const BlockProduct<Factor>&, int64_t begin, int64_t end, float* rows);
  /// All of c on one thread, b laid out one block of depths after the other: of what is deep and not tall, more stays in the cache.
  void (*multiply_deep)(const BlockProduct<Factor>&, float* c);
};

// Each for processors that have what its namespace says.

namespace amx {
extern const BlockKernel<Bf16Factor> kBf16Blocks;
extern const BlockKernel<Bf16x3Factor> kBf16x3Blocks;
}  // namespace amx
namespace avx512_bf16 {
extern const BlockKernel<Bf16Factor> kBf16Blocks;
}  // namespace avx512_bf16
namespace avx2 {
extern const BlockKernel<FloatFactor> kFloatBlocks;
}  // namespace avx2
namespace avx512 {
extern const BlockKernel<FloatFactor> kFloatBlocks;
}  // namespace avx512

}  // namespace lacuna
