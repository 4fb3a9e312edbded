#pragma once

namespace lacuna {

/// What the factors of training's matrix products are; sums are float, and results where they are not factors at once.
enum class FactorPrecision {
  kFp32,    ///< all 24 bits of float
  kBf16x3,  ///< each the sum of two numbers of bf16, three products of these: some 16 bits. fp32 where the processor has no tiles
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
