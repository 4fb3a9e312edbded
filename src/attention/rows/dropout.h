#pragma once

#include <cmath>
#include <cstdint>

#include "base/macros.h"
#include "base/random.h"

namespace lacuna {

/// Decides which attention weights are dropped, one weight at a time and on every device.
struct DropoutRule {
  uint64_t key;        ///< dropout_key()
  uint32_t threshold;  ///< dropout_threshold(); 0 = none

  /// Returns the random numbers of four keys: those at positions with the same quotient by 4.
  LACUNA_HOST_DEVICE PhiloxBlock draw(int32_t query, int32_t key_position) const {
    return philox(key, (static_cast<uint64_t>(query) << 32) | static_cast<uint32_t>(key_position / 4), 0);
  }
  LACUNA_HOST_DEVICE bool drops(const PhiloxBlock& drawn, int32_t key_position) const {
    return (drawn.at(key_position % 4) >> 8) < threshold;
  }
};

/// Returns the key of the random numbers of one sentence and head.
LACUNA_HOST_DEVICE inline uint64_t dropout_key(uint64_t call_key, int64_t head, int64_t sentence_id) {
  return mix(mix(call_key, static_cast<uint64_t>(head)), static_cast<uint64_t>(sentence_id));
}
/// Returns the bound below which the upper 24 of a weight's 32 random bits drop it.
inline uint32_t dropout_threshold(double rate) {
  return static_cast<uint32_t>(std::llround(rate * 0x1p24));
}

/// The dropout of the attention weights of one sentence and head, for whole rows on the CPU. Which weights are dropped
/// is a pure function of the seed, the step, the place in the model, the sentence's id and the positions of query and
/// key. Nothing is stored for the backward pass, and neither threads nor batching change it.
class AttentionDropout {
 public:
  AttentionDropout() = default;  ///< drops nothing
  AttentionDropout(double rate, uint64_t call_key, int64_t head, int64_t sentence_id);

  bool is_active() const { return rule_.threshold > 0; }
  /// Returns the factor of weights that are not dropped: 1 / (1 - rate).
  [[gnu::always_inline]] double scale() const { return scale_; }
  [[gnu::always_inline]] const DropoutRule& rule() const { return rule_; }
  /// Sets factors [count] to scale() or 0, for the keys at positions begin, begin + stride, ...
  void factors(int32_t query, int32_t begin, int32_t count, int32_t stride, float* factors) const;
  void factors(int32_t query, int32_t begin, int32_t count, int32_t stride, double* factors) const;
  /// Sets factors [count] to scale() or 0, for the keys at positions[0], positions[1], ...
  void factors(int32_t query, const int32_t* positions, int32_t count, float* factors) const;
  void factors(int32_t query, const int32_t* positions, int32_t count, double* factors) const;

 private:
  DropoutRule rule_ = {0, 0};
  double scale_ = 1;
};

}  // namespace lacuna
