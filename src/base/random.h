#pragma once

#include <cstdint>

#include "base/macros.h"

namespace lacuna {

/// The output of Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits as
/// a function of (key, counter). Every random decision of a run is a function of what it decides about: of neither
/// threads nor batching, and without state to resume.
struct PhiloxBlock {
  uint32_t word[4];

  /// Returns word[i], chosen and not indexed: on a GPU an array with an unknown index would not stay in registers.
  LACUNA_HOST_DEVICE uint32_t at(int i) const {
    const uint32_t of_first = i % 2 == 0 ? word[0] : word[1], of_last = i % 2 == 0 ? word[2] : word[3];
    return i < 2 ? of_first : of_last;
  }
};

constexpr int kPhiloxRounds = 10;
constexpr uint32_t kPhiloxFactor0 = 0xD2511F53u, kPhiloxFactor2 = 0xCD9E8D57u;    ///< multiply words 0 and 2 of the counter
constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u, kPhiloxKeyStep1 = 0xBB67AE85u;  ///< added to the two words of the key each round

LACUNA_HOST_DEVICE inline PhiloxBlock philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t first = uint64_t{kPhiloxFactor0} * c0, second = uint64_t{kPhiloxFactor2} * c2;
    const uint32_t n0 = static_cast<uint32_t>(second >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(first >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(second);
    c3 = static_cast<uint32_t>(first);
    c0 = n0;
    c2 = n2;
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return {{c0, c1, c2, c3}};
}

/// Mixes two 64-bit values into one (SplitMix64's finalizer): builds keys from several parts.
LACUNA_HOST_DEVICE inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// What random numbers are drawn for: a part of every key, so that no two uses share numbers.
enum class RandomUse : uint64_t { kInitialize = 1, kShuffle, kSubword, kDropout, kAttentionDropout, kSample, kBootstrap };

/// Returns the key of the numbers for one use at one step; `site` identifies the layer and the place in it.
LACUNA_HOST_DEVICE inline uint64_t random_key(uint64_t seed, RandomUse use, uint64_t step, uint64_t site) {
  return mix(mix(mix(seed, static_cast<uint64_t>(use)), step), site);
}

/// A stream of random numbers for host code that needs few (initialization, shuffling, sampling). The counter is its only state.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t stream = 0) : key_(key), stream_(stream) {}

  uint32_t next_bits() {
    if (used_ == 4) {
      block_ = philox(key_, counter_++, stream_);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  /// Uniform in [0, 1) with 53 random bits.
  double next_unit() {
    const uint64_t high = next_bits(), low = next_bits();
    return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
  }
  /// Uniform in [0, bound), bound > 0, without bias (Lemire 2019).
  uint64_t next_below(uint64_t bound) {
    for (;;) {
      const uint64_t high = next_bits(), x = (high << 32) | next_bits();
      const auto wide = static_cast<Wide>(x) * bound;
      if (static_cast<uint64_t>(wide) >= (0 - bound) % bound) return static_cast<uint64_t>(wide >> 64);
    }
  }

 private:
  __extension__ typedef unsigned __int128 Wide;  // accepted by nvcc too
  uint64_t key_, stream_, counter_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

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
