#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "config/options.h"
#include "search/constraints.h"
#include "search/search_queue.h"
#include "search/step_model.h"
#include "text/shortlist.h"

namespace lacuna {

struct SearchSettings {
  TranslateOptions options;
  Constraints constraints;
  int alignment_layer = -1;                         ///< decoder layer whose cross attention is kept as alignment; -1 = none
  uint64_t seed = 1;                                ///< of sampling
  std::shared_ptr<const Shortlist> shortlist = {};  ///< of the tokens that may translate a sentence; null = all
};

/// The log-probability of a token that is not allowed.
inline constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Encodes the inputs; the cache has the settings' alignment layer and, with a shortlist, each input's candidate tokens.
std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Beam search (beam_size 1 is greedy search), or sampling if the options say so, until the queue is empty. Throws Interrupted between two
/// tokens, where signals are taken over (base/interrupt.h).
void search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);
/// The same for these inputs, all in one batch.
SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Sentences leave the batch when they are done, and new ones enter it. Keeps the `beam_size` best unfinished hypotheses of each sentence.
/// Candidates are taken best first (equal ones: the lower token, then the older beam): one that ends in eos is finished, others stay until
/// the beam is full.
///
/// A sentence is done when no live hypothesis can still come among its n_best: log-probabilities only fall, so log_prob / penalty(limit)
/// bounds what one can reach. Once as many are finished as the beam is wide, a live one counts by its score so far, log_prob /
/// penalty(length): unlikely early ends do not stop the search, and hopeful long ones go on.
void beam_search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

/// Batch by batch, draws n_best translations of each sentence token by token: from all tokens, the k best, or the fewest that hold
/// probability p; logits divided by the temperature. The repetition penalty and the temperature change what is drawn; log_prob stays the
/// model's. The draws are a function of (seed, sentence id, position, which draw).
void sample(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

}  // namespace lacuna
