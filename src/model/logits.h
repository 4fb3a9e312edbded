#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/packed_weight.h"

namespace lacuna {

/// The best tokens of each row: [N * k], row by row, best first; equal log-probabilities are ordered by the lower token id.
struct BestTokens {
  int64_t k = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
};

/// What one decoding step says about the next token of N hypotheses: a handle that computes no more than it is asked for.
class Logits {
 public:
  /// logits [N, V] float, before log-softmax; with the sums of their panels, if there are any, most of them need not be read again.
  explicit Logits(Tensor logits, PanelSums panel_sums = {}) : logits_(std::move(logits)), panel_sums_(std::move(panel_sums)) {}
  int64_t num_rows() const { return logits_.size(0); }
  int64_t vocab_size() const { return logits_.size(1); }
  /// The k best tokens of each row without storing a log-softmax. k <= V.
  BestTokens best(int64_t k) const;
  /// Whole rows [N, V] of log-probabilities: ensembles and sampling.
  Tensor log_probs() const;
  /// log-probability of one chosen token of each row.
  std::vector<float> of(const std::vector<int32_t>& tokens) const;

 private:
  Tensor logits_;
  PanelSums panel_sums_;
};

}  // namespace lacuna
