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
  int alignment_layer = -1;                         ///< decoder layer whose cross attention gives the alignment; -1 = none
  uint64_t seed = 1;                                ///< seed of sampling
  std::shared_ptr<const Shortlist> shortlist = {};  ///< tokens that may translate a sentence; null = all
};

/// Log-probability of a token that is not allowed.
inline constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Encodes the inputs and returns their decoder cache, with the settings' alignment layer and, with a shortlist, the
/// candidate tokens of each input.
std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Runs beam search (greedy search if beam_size is 1), or sampling if the options ask for it, until the queue is empty.
/// Throws Interrupted between two tokens if signals are handled (base/interrupt.h) and one has arrived.
void search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);
/// Searches for the translations of `inputs` in a single batch.
SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Beam search over a batch that finished sentences leave and new ones enter. Keeps the `beam_size` best live
/// hypotheses of each sentence. Candidates are taken best first (ties: the lower token id, then the earlier
/// hypothesis): one that ends in eos is finished, the others become live until the beam is full.
///
/// A sentence is finished when no live hypothesis can enter its n_best. Log-probabilities only fall, so log_prob /
/// penalty(limit) bounds the score of a live hypothesis. Once `beam_size` hypotheses are finished, log_prob /
/// penalty(length), the score so far, is used in place of that bound.
void beam_search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

/// Draws n_best translations of each sentence, batch by batch and token by token: from all tokens, from the k best
/// (top-k), or from the smallest set with probability p (top-p, nucleus). The temperature and the repetition penalty
/// change the distribution, but not log_prob, which is the model's. Draws are a pure function of (seed, sentence id,
/// position, index of the draw).
void sample(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

}  // namespace lacuna
