#pragma once

#include <vector>

#include "analysis/links.h"
#include "analysis/sentence_pairs.h"
#include "analysis/weight_gatherer.h"

namespace lacuna {

/// The step whose weights align target piece t: the one that predicts it, or the next one, which has it as input.
enum class AlignmentStep { kNormal, kShifted };
inline constexpr AlignmentStep kAlignmentSteps[] = {AlignmentStep::kNormal, AlignmentStep::kShifted};
/// Returns `normal` or `shifted`.
const char* name_of(AlignmentStep step);

/// Returns the index of the word that each token of a line belongs to once pieces are joined; eos gets the number of words.
std::vector<int32_t> words_of_tokens(const Vocabulary& vocabulary, const std::string& line, const std::vector<TokenId>& ids,
                                     const std::string& joiner);

/// The units that links connect, words or pieces: the unit of each piece, without eos.
struct AlignmentUnits {
  std::vector<int32_t> src, tgt;
  int32_t src_count = 0, tgt_count = 0;
};
/// Units that are words. Pieces that `joiner` joins are one word (the model's `translate.joiner`, text/joiner.h).
AlignmentUnits word_units(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner);
AlignmentUnits piece_units(const SentencePair& pair);

/// Weights between units: the columns of a source unit's pieces are summed, the rows of a target unit's pieces averaged; eos is left out.
class UnitWeights {
 public:
  UnitWeights() = default;
  /// `weights` [target pieces and eos, source pieces and eos] of cross attention.
  UnitWeights(const WeightMatrix& weights, const AlignmentUnits& units, AlignmentStep step);
  /// Adds the weights of another head.
  void add(const UnitWeights& other);
  double at(int32_t tgt, int32_t src) const { return values_[index(tgt, src)]; }
  /// Each target unit with the source unit of the largest weight (the first of equals), none where no weight is positive; by target unit.
  Links links() const;

 private:
  size_t index(int32_t tgt, int32_t src) const {
    return static_cast<size_t>(tgt) * static_cast<size_t>(src_count_) + static_cast<size_t>(src);
  }

  int32_t src_count_ = 0;
  std::vector<double> values_;  // [target units, source units]
};

/// The weights between units of each head [H], and behind them those of the layer: the sum over heads.
std::vector<UnitWeights> unit_weights_of_heads(const CallWeights& call, int64_t sentence, const AlignmentUnits& units, AlignmentStep step);

}  // namespace lacuna
