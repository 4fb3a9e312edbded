#pragma once

#include <vector>

#include "attention/probe.h"
#include "base/ragged_shape.h"

namespace lacuna {

/// Records the cross-attention weights of one layer in one decoding step.
class AlignmentProbe : public AttentionProbe {
 public:
  /// `queries`: the hypotheses, those of a sentence side by side.
  AlignmentProbe(int layer, int64_t num_heads, RaggedShapePtr queries);
  bool wants(int layer, AttentionSite site) const override { return layer == layer_ && site == AttentionSite::kCross; }
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override;
  /// Returns the weights [N][source length], averaged over heads.
  std::vector<std::vector<float>> mean_over_heads() const;

 private:
  int layer_;
  int64_t num_heads_;
  RaggedShapePtr queries_;
  std::vector<std::vector<float>> weights_;  // [N * heads], each written by one thread
};

}  // namespace lacuna
