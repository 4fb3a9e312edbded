#pragma once

#include <cstdint>
#include <vector>

/// Products of rows with a packed weight: plain data between packed_weight.cpp and loops that are compiled once for each instruction set.
///
/// Rows and weights are made of words of 32 bits: one float, two bf16 or four bytes. A panel of the weight holds `panel_columns` outputs,
/// word by word [words, panel_columns], so one word of a row meets a vector of words. A row of the result has the same bits whatever the
/// number of rows; of bytes it has them by all kernels whose rows have as many levels.
namespace lacuna {

/// What the factors of a product are rounded to. Sums are taken in float; those of bytes are exact.
enum class WeightFormat {
  kFloat,
  kBf16x3,  ///< a factor is high + low, both bf16; high high + low high + high low is taken, some 16 bits of the 24 of float
  kBf16,
  kInt8,  ///< weights from -127 to 127 by a scale for each output, rows from their smallest to their largest number (or 0) by a scale each
};

/// What a sum goes through on its way out.
enum class ProductEnd { kNone, kRelu, kGelu };

/// How many numbers of rows are 0. Of many, as relu leaves them, floats skip those that are 0 in a whole group of rows: they add nothing.
enum class RowZeros { kFew, kMany };

struct PackedProduct {
  int64_t words, columns;
  const void *x, *panels;                   ///< [rows, words] and [panels, words, panel_columns] words
  const float *row_scales, *column_scales;  ///< bytes only: [rows], and [panels, panel_columns]
  const int32_t *row_zeros, *column_sums;   ///< bytes only, likewise: the byte that is a row's 0, and what a column's bytes add up to
  const float* bias;                        ///< null = none
  ProductEnd end;
  const int32_t *nonzeros, *nonzero_counts;  ///< of NonzeroWords; null = all words are multiplied
  float* y;                                  ///< [rows, columns]
};

/// The words of rows with many zeros that are to be multiplied, floats only: those that are not 0 in all rows of a group.
struct NonzeroWords {
  int64_t rows, words;
  const float* x;
  int32_t* nonzeros;  ///< [groups of kRowsPerGroup rows, words]: ascending
  int32_t* counts;    ///< [groups]
};

inline constexpr int32_t kWeightLevels = 127;  ///< a weight's largest byte, and with a minus its smallest

/// Rows of floats that become words.
struct RowsToWords {
  WeightFormat format;
  bool is_weight;
  int64_t depth, words;
  const float* x;
  void* to;
  float* scales;   ///< [rows], bytes only
  int32_t* zeros;  ///< [rows], bytes only; a weight has none
};

/// One way to multiply.
struct PackedKernel {
  const char* target;  ///< of the instruction set
  int64_t panel_columns;
  int32_t row_levels;  ///< bytes only: a row's are 0 to row_levels
  /// One panel with rows [begin, end); `begin` is a multiple of kRowBlock. Rows of x exist up to a multiple of kRowsRead, unless floats.
  void (*multiply)(const PackedProduct&, int64_t panel, int64_t begin, int64_t end);
  void (*to_words)(const RowsToWords&, int64_t begin, int64_t end);
  void (*find_nonzeros)(const NonzeroWords&, int64_t first_group, int64_t last_group);  ///< null = all words are multiplied
  /// Bytes only, null = there is no need. Processors without instructions that sum products of bytes in 32 bits first sum some in 16. For
  /// that to be exact, rows have fewer levels than 255, and this takes levels from those rows [4 * words] of a weight that would make a sum
  /// too large: then fewer than 127 are left, and the scale grows.
  void (*fit_short_sums)(int8_t* row, int64_t words, float& scale);
};

inline constexpr int64_t kRowBlock = 192;    ///< rows that pass a panel while it is in cache: whole tiles of every kernel
inline constexpr int64_t kRowsPerGroup = 4;  ///< with many zeros: enough for the loads to keep up, few enough to have zeros in common
static_assert(kRowBlock % kRowsPerGroup == 0);
inline constexpr int64_t kRowsRead = 16;   ///< at a time
inline constexpr int64_t kWordsRead = 16;  ///< likewise: words of a row are a multiple of it, unless floats

/// Those of this machine, best first; the last one needs none but AVX2 and FMA, as the whole program does.
std::vector<PackedKernel> packed_kernels(WeightFormat format);
/// True if this machine has instructions for the format.
bool has_instructions_for(WeightFormat format);
/// True if this machine multiplies bf16 and bytes in tiles (AMX) and lets us.
bool has_amx();
/// `fp32`, `bf16x3`, `bf16` or `int8`.
const char* name_of(WeightFormat format);

}  // namespace lacuna
