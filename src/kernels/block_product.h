#pragma once

#include <cstdint>

/// Products of two matrices that are both used once: both are packed in blocks as part of the product. This header is
/// the interface of plain data between product_in_blocks.cpp and loops that are compiled once for each instruction set.
namespace lacuna {

// The storage of a factor's numbers in words of 32 bits.

/// Numbers of bf16 (as bits), two in a word.
struct Bf16Factor {
  using Number = uint16_t;
  static constexpr int64_t kNumbersInWord = 2, kParts = 1;
};
/// Each number is the sum of two of bf16, high + low; the product is low high + high high + high low. The term left out
/// is at most 2^-15 of the product.
struct Bf16x3Factor {
  using Number = float;
  static constexpr int64_t kNumbersInWord = 2, kParts = 2;
};
struct FloatFactor {
  using Number = float;
  static constexpr int64_t kNumbersInWord = 1, kParts = 1;
};

/// A matrix with its strides in elements; one of them is 1.
template <class Number>
struct StridedMatrix {
  const Number* data;
  int64_t row, column;
};

/// The product c [rows, columns] = a [rows, depth] x b [depth, columns] + bias [columns], or with `add` c += a x b.
/// `bias` may be null. Sums are taken in the order of depth, in parts of kDepthBlock: their bits do not depend on
/// threads, nor on how many rows and columns there are.
template <class Factor>
struct BlockProduct {
  int64_t rows, columns, depth;
  StridedMatrix<typename Factor::Number> a, b;
  int64_t c_row;
  bool add;  ///< only without a bias
  const float* bias;
  uint32_t* panels;  ///< room for b: panel_words(), or deep_panel_words()
};

inline constexpr int64_t kBlock = 32;               ///< rows of a, and columns of b in a panel
inline constexpr int64_t kWordsInDepthBlock = 256;  ///< few enough for a block of rows to stay in the L1 cache for all panels
inline constexpr int64_t kWordsInStep = 16;         ///< depth that is packed at a time
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

/// Returns the words of the panels of b for one block of depths.
template <class Factor>
[[gnu::always_inline]] inline int64_t deep_panel_words(const BlockProduct<Factor>& product) {
  return blocks_in(product.columns) * kBlock * kWordsInDepthBlock;
}

/// One implementation of the product.
template <class Factor>
struct BlockKernel {
  /// Packs panels begin to end - 1 of b. All panels must be packed before multiply_rows is called.
  void (*pack_panels)(const BlockProduct<Factor>&, int64_t begin, int64_t end);
  /// Computes blocks begin to end - 1 of the rows of c; `rows` points to the first of these rows.
  void (*multiply_rows)(const BlockProduct<Factor>&, int64_t begin, int64_t end, float* rows);
  /// Computes all of c on one thread, packing b one block of depths at a time: faster where products are deep and not
  /// tall.
  void (*multiply_deep)(const BlockProduct<Factor>&, float* c);
};

// Each namespace is a CpuTarget.

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
