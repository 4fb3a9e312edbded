#pragma once

#include <vector>

#include "analysis/null_contrast.h"
#include "analysis/sentence_pairs.h"
#include "attention/probe.h"
#include "model/transformer.h"

namespace lacuna {

/// Log-probability of every target token of each pair of a batch, in nats. `probe`, if any, sees the attention. Throws CheckpointError if
/// some are not numbers.
std::vector<std::vector<float>> token_log_probs(Transformer& model, const std::vector<const SentencePair*>& pairs,
                                                AttentionProbe* probe = nullptr);

/// How good a pair looks to a model.
struct PairScore {
  float null_rate = 1;      ///< of cross attention, over layers, heads and target tokens
  float log_prob = 0;       ///< mean log-probability of a target token, in nats
  float null_contrast = 0;  ///< see null_contrast.h; 0 unless pairs are ranked by it
  bool is_scored = false;   ///< false: a side is empty or too long for the model
};

/// The score of each pair, in order; with null contrasts if `contrast` is given.
std::vector<PairScore> score_pairs(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens,
                                   const NullContrast* contrast = nullptr);

/// Fits what tells these pairs from the same sources with the targets of other pairs. Throws DataError if fewer than two can be scored.
NullContrast null_contrast_of(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens);

/// True if some cross attention of the model can attend to nothing.
bool has_null_rows(const ModelOptions& options);

}  // namespace lacuna
