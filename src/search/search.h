#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "config/options.h"
#include "search/constraints.h"
#include "search/hypothesis.h"
#include "search/step_model.h"
#include "text/shortlist.h"

namespace lacuna {

/// One sentence to translate.
struct SearchInput {
  std::vector<TokenId> src;     ///< ends in eos
  std::vector<TokenId> prefix;  ///< target tokens that the translation must begin with
  int64_t id = 0;               ///< names the sentence's random numbers
};

struct SearchSettings {
  TranslateOptions options;
  Constraints constraints;
  int alignment_layer = -1;                         ///< decoder layer whose cross attention is kept as alignment; -1 = none
  uint64_t seed = 1;                                ///< of sampling
  std::shared_ptr<const Shortlist> shortlist = {};  ///< of the tokens that may translate a sentence; null = all
};

/// Translations of each input, `n_best` of them, best first. What else is in the batch does not change them.
using SearchResults = std::vector<std::vector<Hypothesis>>;

/// The log-probability of a token that may not come.
inline constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Throws CheckpointError if a log-probability that a model gave is not a number, or its token none.
void require_number(float log_prob, TokenId token);

/// Reads the inputs; the cache knows what the settings ask of it.
std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Beam search (beam_size 1 is greedy search), or sampling if the options say so.
SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Keeps the `beam_size` best unfinished hypotheses of each sentence. Candidates are taken best first (equal ones: the lower token, then
/// the older beam): one that ends in eos is finished, others stay until the beam is full.
///
/// A sentence is done when no live hypothesis can still come among its n_best: log-probabilities only fall, so log_prob / penalty(limit)
/// bounds what one can reach. Once as many are finished as the beam is wide, a live one counts by its score so far, log_prob /
/// penalty(length): unlikely early ends do not stop the search, and hopeful long ones go on.
SearchResults beam_search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Draws n_best translations of each sentence token by token: from all tokens, the k best, or the fewest that hold probability p; logits
/// divided by the temperature. The draws are a function of (seed, sentence id, position, which draw).
SearchResults sample(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

}  // namespace lacuna
