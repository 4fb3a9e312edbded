#pragma once

#include <cstddef>
#include <vector>

#include "analysis/sentence_pairs.h"
#include "attention/probe.h"
#include "model/transformer.h"

namespace lacuna {

/// Returns every target token's log-probability, in nats, by pair. `probe` may see the attention. Throws CheckpointError for NaN.
std::vector<std::vector<float>> token_log_probs(Transformer& model, const std::vector<const SentencePair*>& pairs,
                                                AttentionProbe* probe = nullptr);

/// A classifier of pairs by their null rates, one for each layer and head of cross attention: do the sides belong together? Heads differ:
/// where they do not, one attends to nothing more often and another less often, which a mean over heads loses. The weight of each is
/// learned without labels, from the same sources beside the targets of other pairs, by Fisher's linear discriminant (1936),
///
///   w = (C + 1e-4 I)^-1 (m_shuffled - m_given)
///
/// with the means m of both kinds and C the mean of their covariances.
class NullContrast {
 public:
  /// Fits the classifier to rows of null rates, at least two of each kind. Throws ShapeError for fewer.
  static NullContrast fit(const std::vector<std::vector<float>>& given, const std::vector<std::vector<float>>& shuffled);

  /// Returns w . (rates - the middle between both means): above 0, the pair is more like a shuffled one.
  double of(const std::vector<float>& null_rates) const;

 private:
  std::vector<double> weights_, middle_;
};

/// A model's judgment of whether a pair is a translation.
struct PairScore {
  float null_rate = 1;      ///< of cross attention, over layers, heads and target tokens
  float log_prob = 0;       ///< mean log-probability of a target token, in nats
  float null_contrast = 0;  ///< by NullContrast; 0 unless pairs are ranked by it
  bool is_scored = false;   ///< false: a side is empty or too long for the model
};

/// Returns the score of each pair, in order; with null contrasts if `contrast` is given.
std::vector<PairScore> score_pairs(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens,
                                   const NullContrast* contrast = nullptr);

/// Fits a NullContrast to these pairs and their sources beside other targets. Throws DataError if fewer than two can be scored.
NullContrast null_contrast_of(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens);

/// Returns true if some cross attention of the model can attend to nothing.
bool has_null_rows(const ModelOptions& options);

/// A ranking of pairs: by low null rate, low null contrast, high log-probability, or mean rank by null rate and log-probability.
enum class FilterBy { kNullRate, kNullContrast, kLogProb, kBoth };

/// Returns the indices of the pairs, the best first; those without scores come last. Equals stay in order.
std::vector<size_t> ranked(const std::vector<PairScore>& scores, FilterBy by);

}  // namespace lacuna
