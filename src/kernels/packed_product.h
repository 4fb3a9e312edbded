#pragma once

#include <cstdint>
#include <vector>

/// Products of rows with a packed weight: plain data between packed_weight.cpp and loops that are compiled once for each instruction set.
///
/// Rows and weights are made of words of 32 bits: one float, two bf16 or four bytes. A panel of the weight holds `panel_columns` outputs,
/// word by word [words, panel_columns], so one word of a row meets a vector of words. Where a processor multiplies no bytes, those of a row
/// have 16 bits each. A row of the result has the same bits whatever the
/// number of rows.
namespace lacuna {

/// What the factors of a product are rounded to. Sums are taken in float; those of bytes are exact.
enum class WeightFormat {
  kFloat,
  kBf16x3,  ///< a factor is high + low, both bf16; high high + low high + high low is taken, some 16 bits of the 24 of float
  kBf16,
  kInt8,  ///< weights by a scale for each output, rows by a scale each
};

/// What a sum goes through on its way out.
enum class ProductEnd { kNone, kRelu, kGelu };

struct PackedProduct {
  int64_t words, columns;
  const void *x, *panels;                   ///< [rows, words * row_words] and [panels, words, panel_columns] words
  const float *row_scales, *column_scales;  ///< bytes only: [rows], and [panels, panel_columns]
  const int32_t* column_offsets;            ///< bytes only, likewise: what the rows' bytes being 128 too large adds to each sum
  const float* bias;                        ///< null = none
  ProductEnd end;
  float* y;  ///< [rows, columns]
};

/// Rows of floats that become words.
struct RowsToWords {
  WeightFormat format;
  bool is_weight;
  int64_t depth, words;  ///< words as in a weight: a row has row_words for each
  const float* x;
  void* to;
  float* scales;  ///< [rows], bytes only
};

/// One way to multiply.
struct PackedKernel {
  const char* target;  ///< of the instruction set
  int64_t panel_columns;
  int64_t row_words;  ///< what a word of a weight is in a row
  /// One panel with rows [begin, end); `begin` is a multiple of kRowBlock. Rows of x exist up to a multiple of kRowsRead, unless floats.
  void (*multiply)(const PackedProduct&, int64_t panel, int64_t begin, int64_t end);
  void (*to_words)(const RowsToWords&, int64_t begin, int64_t end);
};

inline constexpr int64_t kRowBlock = 192;  ///< rows that pass a panel while it is in cache: whole tiles of every kernel
inline constexpr int64_t kRowsRead = 16;   ///< at a time
inline constexpr int64_t kWordsRead = 16;  ///< likewise: words of a row are a multiple of it, unless floats

/// Those of this machine, best first; the last one needs no special instructions.
std::vector<PackedKernel> packed_kernels(WeightFormat format);
/// True if this machine has instructions for the format.
bool has_instructions_for(WeightFormat format);
/// True if this machine multiplies bf16 and bytes in tiles (AMX) and lets us.
bool has_amx();
/// `fp32`, `bf16x3`, `bf16` or `int8`.
const char* name_of(WeightFormat format);

}  // namespace lacuna
