#pragma once

#include <bit>
#include <cstdint>

#include "attention/rows/row.h"

namespace lacuna::cuda {

/// A bfloat16, the upper half of a float, laid out as LibTorch's and CUDA's own types.
struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  /// Rounds to the nearest, ties to even.
  LACUNA_HD explicit Bf16(float x) : bits(rounded(std::bit_cast<uint32_t>(x))) {}
  LACUNA_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  LACUNA_HD static uint16_t rounded(uint32_t word) {
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    return static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

}  // namespace lacuna::cuda
