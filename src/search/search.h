#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
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
  /// Beam search: the text of a finished hypothesis. With it, the translations of a sentence differ in their texts, and
  /// the best tokens of each text are kept. Called by any of the threads.
  std::function<std::string(const Hypothesis&)> text_of = {};
  std::function<void()> look = {};  ///< called before each token, by any of the threads; it may throw to end the search
  int alignment_head = -1;          ///< head of the alignment layer; -1 = the average of all
};

/// Returns the options of a sentence: its own, or those of the settings.
inline const TranslateOptions& options_of(const SearchInput& input, const SearchSettings& settings) {
  return input.own ? input.own->options : settings.options;
}
/// Returns the constraints of a sentence: its own, or those of the settings.
inline const Constraints& constraints_of(const SearchInput& input, const SearchSettings& settings) {
  return input.own ? input.own->constraints : settings.constraints;
}

/// Log-probability of a token that is not allowed.
inline constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Encodes the inputs and returns their cache, with the settings' alignment layer and the shortlist's candidates.
std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Runs beam search (greedy if beam_size is 1) or sampling until the queue is empty. Throws Interrupted between tokens.
void search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);
/// Searches for the translations of `inputs` in a single batch.
SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings);

/// Beam search over a batch that finished sentences leave and new ones enter, with `beam_size` live hypotheses a
/// sentence; a sentence may have options of its own. Candidates are taken best first (ties: the lower token id, then the earlier
/// hypothesis): one that ends in eos is finished, the others become live until the beam is full. A sentence is finished when no live
/// hypothesis can enter its n_best: log_prob / penalty(limit) bounds its score; once `beam_size` are finished, log_prob / penalty(length)
/// is used instead. With `text_of`, hypotheses of one text count once; the length limit may leave fewer than n_best.
void beam_search(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

/// Draws n_best translations of each sentence token by token: from all tokens, the k best (top-k), or the smallest set
/// with probability p (top-p, nucleus). The temperature and the repetition penalty change the distribution, but not
/// log_prob, the model's. Draws are a function of (seed, sentence id, position, index of the draw).
void sample(StepModel& model, SearchQueue& queue, const SearchSettings& settings);

}  // namespace lacuna
