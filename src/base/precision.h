#pragma once

namespace lacuna {

/// The precision of the factors of matrix products. Sums are taken in float; those of int8 products are exact.
/// model/precision.h decides what kAuto is on a device.
enum class Precision {
  kAuto,    ///< in options: bf16 where the device multiplies it faster, else fp32
  kFp32,    ///< all 24 bits of float
  kBf16x3,  ///< in training: each factor is the sum of two bf16 numbers, multiplied in three products; about 16 bits
  kBf16,    ///< 8 bits
  kInt8,    ///< in translating: bytes, with a scale for each output of a weight and each row of activations
};

/// Returns the precision's name in configurations.
inline const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kAuto:
      break;
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16x3:
      return "bf16x3";
    case Precision::kBf16:
      return "bf16";
    case Precision::kInt8:
      return "int8";
  }
  return "auto";
}

}  // namespace lacuna
