#pragma once

#include <vector>

#include "attention/probe.h"

namespace lacuna {

/// Gathers the cross-attention weights of one layer in one decoding step, where each hypothesis has one query.
class AlignmentProbe : public AttentionProbe {
 public:
  AlignmentProbe(int layer, int64_t num_heads, int64_t num_hypotheses);
  bool wants(int layer, AttentionSite site) const override { return layer == layer_ && site == AttentionSite::kCross; }
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override;
  /// [N][source length]
  std::vector<std::vector<float>> mean_over_heads() const;

 private:
  int layer_;
  int64_t num_heads_;
  std::vector<std::vector<float>> weights_;  // [N * heads], each written by one thread
};

}  // namespace lacuna
