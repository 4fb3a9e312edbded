#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/packed_weight.h"

namespace lacuna {

/// The best tokens of each row: [N * k], row by row, best first; equal log-probabilities are ordered by the lower token id.
struct BestTokens {
  int64_t k = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
};

/// Ids of tokens, ascending.
using TokenSet = std::shared_ptr<const std::vector<int32_t>>;

/// What one decoding step says about the next token of N hypotheses: a handle that computes no more than it is asked for.
class Logits {
 public:
  /// logits [N, V] float, before log-softmax; with the sums of their panels, if there are any, most of them need not be read again.
  explicit Logits(Tensor logits, PanelSums panel_sums = {}) : logits_(std::move(logits)), panel_sums_(std::move(panel_sums)) {}
  /// The same where each row is over a few tokens of its own: column j of row i is token tokens[i][j], and what comes after the last is not
  /// read. All other tokens of the vocabulary are impossible: their log-probability is -inf.
  Logits(Tensor logits, std::vector<TokenSet> tokens, int64_t vocab_size)
      : logits_(std::move(logits)), tokens_(std::move(tokens)), vocab_size_(vocab_size) {}
  int64_t num_rows() const { return logits_.size(0); }
  int64_t vocab_size() const { return tokens_.empty() ? logits_.size(1) : vocab_size_; }
  /// The k best tokens of each row without storing a log-softmax. k <= V; where fewer are possible, impossible ones end the row.
  BestTokens best(int64_t k) const;
  /// Whole rows [N, V] of log-probabilities: ensembles and sampling.
  Tensor log_probs() const;
  /// log-probability of one chosen token of each row.
  std::vector<float> of(const std::vector<int32_t>& tokens) const;

 private:
  Tensor logits_;
  PanelSums panel_sums_;
  std::vector<TokenSet> tokens_;  // [N], or none: all
  int64_t vocab_size_ = 0;
};

}  // namespace lacuna
