#pragma once

#include <cstdint>

#include "base/random.h"

namespace lacuna {

/// A keyed random order of 0 .. size-1 that needs no memory: a Feistel network on the next even power of two, walked until the
/// result is in range (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key) : size_(size), key_(key) {
    while ((uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  }

  /// The element at a position; position < size.
  uint64_t at(uint64_t position) const {
    do {
      position = scramble(position);
    } while (position >= size_);
    return position;
  }

 private:
  static constexpr uint64_t kRounds = 10;  // with four, orders of ten elements are visibly uneven

  uint64_t scramble(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_, right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (mix(key_ + round, right) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  uint64_t size_, key_;
  unsigned half_bits_ = 1;
};

}  // namespace lacuna
