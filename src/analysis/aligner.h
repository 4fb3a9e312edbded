#pragma once

#include <vector>

#include "analysis/analysis.h"

/// Word alignments read off cross attention.
namespace lacuna {

/// The choice of weights that links are read off: one head of a decoder layer, or the average of all.
struct AlignmentChoice {
  int layer = 0;
  std::optional<int64_t> head = {};  ///< none = average
  AlignmentStep step = AlignmentStep::kNormal;
};

/// "layer 2, head 1, shifted".
std::string text_of(const AlignmentChoice& choice);

enum class LinkUnit { kWord, kPiece };

/// Returns the links of each pair; none for a pair with an empty side, and for one that is too long. Throws CheckpointError if the model's
/// outputs are not finite numbers.
std::vector<Links> align_pairs(const AnalyzedModel& model, const std::vector<SentencePair>& pairs, const AlignmentChoice& choice,
                               LinkUnit unit, int64_t batch_tokens);

/// Returns the choice with the lowest error rate in an analysis with alignment, and sets `error_rate` to that rate.
AlignmentChoice best_choice(const ModelAnalysis& analysis, double& error_rate);

}  // namespace lacuna
