#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/best_tokens.h"
#include "kernels/packed_weight.h"

namespace lacuna {

/// Throws CheckpointError if a log-probability that a model gave is NaN, or its token is no token.
void require_number(float log_prob, int32_t token);
/// Throws CheckpointError if values that a model gave (log-probabilities, or the decoder's output) contain NaN.
void require_numbers(const Tensor& values);

/// Token ids, ascending.
using TokenSet = std::shared_ptr<const std::vector<int32_t>>;

/// The distribution over the next token of N hypotheses, evaluated lazily: each query below recomputes the rows, a few
/// at a time, and logits [N, V] are never stored.
class Logits {
 public:
  /// Wraps rows [N, V] of float, before log-softmax; with a projection [V, D] and its bias [V], which may be undefined,
  /// these are hidden rows [N, D] that are multiplied with it.
  explicit Logits(const Tensor& rows, std::shared_ptr<const PackedWeight> projection = nullptr, const Tensor& bias = {});
  /// Does that for hidden rows in plain memory, which must stay, and a projection that is packed.
  Logits(const float* hidden, int64_t num_rows, std::shared_ptr<const PackedWeight> projection, const Tensor& bias)
      : memory_(hidden), num_rows_(num_rows), columns_(projection->inputs()), projection_(std::move(projection)), bias_(bias) {}
  /// Wraps rows [N, columns], each over a few tokens of its own: column j of row i is token tokens[i][j], and later
  /// columns are not read. All other tokens of the vocabulary are impossible: their log-probability is -inf.
  Logits(const Tensor& rows, std::vector<TokenSet> tokens, int64_t vocab_size) : Logits(rows) {
    tokens_ = std::move(tokens);
    vocab_size_ = vocab_size;
  }
  int64_t num_rows() const { return num_rows_; }
  int64_t vocab_size() const {
    if (!tokens_.empty()) return vocab_size_;
    return projection_ ? projection_->outputs() : columns_;
  }
  /// Returns the k best tokens of each row, and one chosen token of each. k <= V; where fewer are possible, impossible
  /// ones end the row.
  BestTokens best(int64_t k, const std::vector<int32_t>& asked = {}) const;
  /// Does that for these rows alone; `best` is memory that is used again.
  void find_best(const std::vector<int32_t>& rows, int64_t k, const std::vector<int32_t>& asked, BestTokens& best) const;
  /// Returns true if find_best() works on a GPU: one call for all rows costs less there than two for parts of them.
  bool are_on_gpu() const { return tokens_.empty() && gpu::finds_best(memory_ != nullptr ? at::Device(at::kCPU) : rows_.device()); }
  /// Returns whole rows [N, V] of log-probabilities, for ensembles and sampling: these, or all (null).
  Tensor log_probs(const std::vector<int32_t>* rows = nullptr) const;
  /// Returns the log-probability of one chosen token of each row.
  std::vector<float> of(const std::vector<int32_t>& tokens) const;

 private:
  template <class F>
  void for_rows(const std::vector<int32_t>* chosen, F f) const;
  Tensor logits_of(const std::vector<int32_t>* chosen) const;
  const float* rows_in_memory(const std::vector<int32_t>* chosen, int64_t first, int64_t count) const;

  Tensor rows_;                    // undefined = they are in memory of somebody else
  const float* memory_ = nullptr;  // where they are; null = on a GPU, or not of float
  int64_t num_rows_, columns_;
  std::shared_ptr<const PackedWeight> projection_;  // null = the rows are logits
  Tensor bias_;                                     // of the projection; undefined = none
  std::vector<TokenSet> tokens_;                    // [N], or none: all
  int64_t vocab_size_ = 0;
};

}  // namespace lacuna
