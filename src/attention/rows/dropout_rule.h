#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "base/random.h"

namespace lacuna {

/// Which attention weights are dropped, for one weight at a time and on every device. (AttentionDropout does whole rows on the CPU.)
struct DropoutRule {
  uint64_t key;        ///< dropout_key()
  uint32_t threshold;  ///< dropout_threshold(); 0 = none

  /// The random numbers of four keys: those at positions with the same quotient by 4.
  LACUNA_HOST_DEVICE PhiloxBlock draw(int32_t query, int32_t key_position) const {
    return philox(key, (static_cast<uint64_t>(query) << 32) | static_cast<uint32_t>(key_position / 4), 0);
  }
  LACUNA_HOST_DEVICE bool drops(const PhiloxBlock& drawn, int32_t key_position) const {
    return (drawn.word[key_position % 4] >> 8) < threshold;
  }
};

/// Of one head and sentence.
LACUNA_HOST_DEVICE inline uint64_t dropout_key(uint64_t call_key, int64_t head, int64_t sentence_id) {
  return mix(mix(call_key, static_cast<uint64_t>(head)), static_cast<uint64_t>(sentence_id));
}
/// A weight is dropped if the upper 24 of its 32 random bits are below.
inline uint32_t dropout_threshold(double rate) {
  return static_cast<uint32_t>(std::llround(rate * 0x1p24));
}

}  // namespace lacuna
