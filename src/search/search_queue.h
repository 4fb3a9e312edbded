#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "search/hypothesis.h"

namespace lacuna {

/// One sentence to translate.
struct SearchInput {
  std::vector<TokenId> src;     ///< ends in eos
  std::vector<TokenId> prefix;  ///< target tokens that the translation must begin with
  int64_t id = 0;               ///< names the sentence's random numbers
};

/// Translations of each input, `n_best` of them, best first. What else is in the batch does not change them.
using SearchResults = std::vector<std::vector<Hypothesis>>;

/// Sentences that wait for their translation, in the order in which they are taken. Searches on several threads may share one: each fills
/// up its batch as sentences of it are done.
class SearchQueue {
 public:
  /// A search works on at most `batch_tokens` source tokens at a time, or on one sentence.
  SearchQueue(std::vector<SearchInput> inputs, int64_t batch_tokens);
  /// Places (in `inputs`) of sentences for a search that is at work on `tokens` source tokens: none while that is more than half a batch
  /// (reading few sentences at a time is slow), or if nothing is left.
  std::vector<size_t> take(int64_t tokens);
  const SearchInput& input(size_t place) const { return inputs_[place]; }
  std::vector<SearchInput> inputs(const std::vector<size_t>& places) const;
  /// To be called once for each place that was taken.
  void finish(size_t place, std::vector<Hypothesis> translations) { results_[place] = std::move(translations); }
  /// The translations of all inputs, once all searches have ended.
  SearchResults results() && { return std::move(results_); }

 private:
  const std::vector<SearchInput> inputs_;
  const int64_t batch_tokens_;
  SearchResults results_;
  std::mutex mutex_;  // of next_
  size_t next_ = 0;
};

}  // namespace lacuna
