#pragma once

#include <cstdint>
#include <vector>

#include "base/precision.h"
#include "kernels/cpu_target.h"

/// Products of rows with a packed weight. This header is the interface of plain data between packed_weight.cpp and
/// loops that are compiled once for each instruction set.
///
/// Rows and weights are made of words of 32 bits: one float, two bf16 or four bytes. A panel of the weight holds
/// `panel_columns` outputs, word by word [words, panel_columns], so one word of a row meets a vector of words. A row of
/// the result has the same bits whatever the number of rows; int8 has them in all kernels with as many row levels.
namespace lacuna {

/// The activation that is applied to a product's results.
enum class ProductEnd { kNone, kRelu, kGelu, kSwish };

/// A hint whether few or many numbers of the rows are 0. With many, as after relu, float kernels skip words that are 0
/// in a whole group of rows.
enum class RowZeros { kFew, kMany };

struct PackedProduct {
  int64_t words, columns;
  const void *x, *panels;                   ///< [rows, words] and [panels, words, panel_columns] words
  const float *row_scales, *column_scales;  ///< bytes only: [rows], and [panels, panel_columns]
  const int32_t *row_zeros, *column_sums;   ///< bytes only, likewise: the byte that stands for 0 in a row, and the sum of a column's bytes
  const float* bias;                        ///< null = none
  ProductEnd end;
  const int32_t *nonzeros, *nonzero_counts;  ///< see NonzeroWords; null = all words are multiplied
  float* y;                                  ///< [rows, columns]
};

/// The words that are multiplied where rows have many zeros (floats only): those that are not 0 in every row of a
/// group.
struct NonzeroWords {
  int64_t rows, words;
  const float* x;
  int32_t* nonzeros;  ///< [groups of kRowsPerGroup rows, words]: ascending
  int32_t* counts;    ///< [groups]
};

inline constexpr int32_t kWeightLevels = 127;  ///< a weight's largest byte, and with a minus its smallest

/// The conversion of rows of floats to words.
struct RowsToWords {
  Precision precision;  ///< fp32, bf16 or int8
  bool is_weight;
  int64_t depth, words;
  const float* x;
  void* to;
  float* scales;   ///< [rows], bytes only
  int32_t* zeros;  ///< [rows], bytes only; a weight has none
};

/// One implementation of the product.
struct PackedKernel {
  CpuTarget target;
  int64_t panel_columns;
  int32_t row_levels;  ///< bytes only: those of a row are from 0 to row_levels
  /// Multiplies one panel with rows [begin, end); `begin` is a multiple of kRowBlock. x is padded to a multiple of
  /// kRowsRead rows, unless float.
  void (*multiply)(const PackedProduct&, int64_t panel, int64_t begin, int64_t end);
  void (*to_words)(const RowsToWords&, int64_t begin, int64_t end);
  void (*find_nonzeros)(const NonzeroWords&, int64_t first_group, int64_t last_group);  ///< null = all words are multiplied
  /// Bytes only; null = not needed. Processors that cannot sum products of bytes in 32 bits first sum a few in 16 bits.
  /// For these sums not to overflow, rows have fewer than 255 levels, and this function requantizes a weight's row [4 *
  /// words] that could still overflow to fewer than 127 levels with a larger scale.
  void (*fit_short_sums)(int8_t* row, int64_t words, float& scale);
};

inline constexpr int64_t kRowBlock = 192;    ///< rows that pass a panel while it is in cache: whole tiles of every kernel
inline constexpr int64_t kRowsPerGroup = 4;  ///< of NonzeroWords: enough for loads to keep up, few enough to have zeros in common
static_assert(kRowBlock % kRowsPerGroup == 0);
inline constexpr int64_t kRowsRead = 16;   ///< rows that are read at a time
inline constexpr int64_t kWordsRead = 16;  ///< words that are read at a time: a row's number of words is a multiple of it, unless float

/// Returns the kernels for products in fp32, bf16 or int8 that this machine can run, the fastest first; the last one
/// needs AVX2 only.
std::vector<PackedKernel> packed_kernels(Precision precision);

}  // namespace lacuna
