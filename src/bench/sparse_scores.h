#pragma once

#include "bench/attention_op.h"

namespace lacuna {

/// Scores on which a type gives a wanted share of zero weights.
struct SparseScores {
  ConfigNode attention;    ///< the type; top-k with the k that it takes
  AttentionInputs inputs;  ///< scores scaled, or for a type whose zero has a meaning (ReLA) shifted
  double zero_share = 0;   ///< what came out, on the first sentence
};

/// True for types that give zero weights at all.
bool can_give_zeros(const AttentionType& type);

/// Finds scores with a share of zeros as near to `zeros` as scaling (shifting, choosing k) can bring it. `attention` names a type that
/// gives zeros.
SparseScores sparse_scores(const ConfigNode& attention, const AttentionShape& shape, const AttentionInputs& inputs, double zeros);

}  // namespace lacuna
