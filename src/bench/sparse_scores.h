#pragma once

#include "bench/attention_op.h"

namespace lacuna {

/// Scores for which a type gives a required share of zero weights.
struct SparseScores {
  ConfigNode attention;    ///< the type; top-k with its k
  AttentionInputs inputs;  ///< with scaled scores; for ReLA, whose zero has a meaning, shifted ones
  double zero_share = 0;   ///< the share reached, on the first sentence
};

/// True for types that can give zero weights.
bool can_give_zeros(const AttentionType& type);

/// Finds scores with a share of zeros as near to `zeros` as scaling, shifting or the choice of k allows. REQUIRES: can_give_zeros().
SparseScores sparse_scores(const ConfigNode& attention, const AttentionShape& shape, const AttentionInputs& inputs, double zeros);

}  // namespace lacuna
