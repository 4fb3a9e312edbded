#pragma once

namespace lacuna {

/// Precision of the operands of matrix products in training. Accumulation is in float; so are results, unless they feed the next product
/// directly.
enum class FactorPrecision {
  kFp32,    ///< all 24 bits of float
  kBf16x3,  ///< each the sum of two bf16 numbers, in three products: some 16 bits. fp32 where the processor has no AMX tiles
  kBf16     ///< rounded to bf16: 8 bits
};

inline const char* name_of(FactorPrecision precision) {
  switch (precision) {
    case FactorPrecision::kFp32:
      return "fp32";
    case FactorPrecision::kBf16x3:
      return "bf16x3";
    case FactorPrecision::kBf16:
      return "bf16";
  }
  return "unknown";
}

}  // namespace lacuna
