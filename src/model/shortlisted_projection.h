#pragma once

#include <optional>
#include <vector>

#include "model/embedding.h"
#include "model/logits.h"

namespace lacuna {

/// The projection to the vocabulary where each sentence has its own candidate tokens. The candidates' rows of the
/// weight are packed when a sentence is first projected, and each sentence has a product of its own, so the rest of the
/// batch does not change its logits.
class ShortlistedProjection {
 public:
  /// candidates [B]: ascending ids, at least one for each sentence.
  explicit ShortlistedProjection(const std::vector<std::vector<int32_t>>& candidates);
  /// Keeps the sentences `kept`, renumbered 0, 1, ..., and appends those of `other`.
  void join(const std::vector<int32_t>& kept, ShortlistedProjection&& other);
  /// Returns the logits of hidden [N, D], each row's over its sentence's candidates. Rows of one sentence stand side by
  /// side. `output` is the same in every call.
  Logits logits(const Tensor& hidden, const std::vector<int32_t>& sentences, const OutputProjection& output);

 private:
  /// The candidates' rows of the output projection.
  struct Rows {
    PackedWeight weight;
    Tensor bias;
  };
  const Rows& rows_of(int32_t sentence, const OutputProjection& output);

  std::vector<TokenSet> candidates_;
  std::vector<std::optional<Rows>> rows_;
};

}  // namespace lacuna
