#pragma once

#include <cstdint>

#include "attention/rows/dropout_rule.h"

namespace lacuna {

/// Which attention weights of one sentence and head are dropped: a pure function of the seed, the step, the place in the model, the
/// sentence's id and the positions of query and key. Nothing is stored for the backward pass, and neither threads nor batching change it.
class AttentionDropout {
 public:
  AttentionDropout() = default;  ///< drops nothing
  AttentionDropout(double rate, uint64_t call_key, int64_t head, int64_t sentence_id);

  bool is_active() const { return rule_.threshold > 0; }
  /// What a kept weight is multiplied with: 1 / (1 - rate).
  [[gnu::always_inline]] double scale() const { return scale_; }
  [[gnu::always_inline]] const DropoutRule& rule() const { return rule_; }
  /// factors [count]: scale() or 0, for the keys at positions begin, begin + stride, ...
  void factors(int32_t query, int32_t begin, int32_t count, int32_t stride, float* factors) const;
  void factors(int32_t query, int32_t begin, int32_t count, int32_t stride, double* factors) const;
  /// The same for the keys at positions[0], positions[1], ...
  void factors(int32_t query, const int32_t* positions, int32_t count, float* factors) const;
  void factors(int32_t query, const int32_t* positions, int32_t count, double* factors) const;

 private:
  DropoutRule rule_ = {0, 0};
  double scale_ = 1;
};

}  // namespace lacuna
