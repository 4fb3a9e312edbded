#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace lacuna {

using at::Tensor;

/// The best tokens of each row: [N * k], row by row, best first; equal log-probabilities are ordered by the lower token id.
struct BestTokens {
  int64_t k = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
};

/// What one decoding step says about the next token of N hypotheses: a handle that computes no more than it is asked for.
class Logits {
 public:
  /// logits [N, V] float, before log-softmax.
  explicit Logits(Tensor logits) : logits_(std::move(logits)) {}
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
};

}  // namespace lacuna
