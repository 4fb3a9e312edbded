#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace lacuna {

/// The cross-attention weights of one target token [source length], averaged over heads; shared by hypotheses.
using AlignmentRow = std::shared_ptr<const std::vector<float>>;

/// A translation in target tokens, live or finished.
struct Hypothesis {
  std::vector<TokenId> tokens;          ///< [n] without bos; a finished one ends in eos
  std::vector<float> token_log_probs;   ///< [n] as the model gave them
  double log_prob = 0;                  ///< sum of token_log_probs; in beam search after the repetition penalty
  double score = 0;                     ///< log_prob / length penalty, once finished
  std::vector<AlignmentRow> alignment;  ///< [n], or empty if not asked for
  bool is_truncated = false;            ///< its eos was forced: at the length limit, or because no other token was allowed
  int32_t draw = 0;                     ///< sampling: index among the sentence's draws

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  TokenId last_token() const { return tokens.empty() ? kBos : tokens.back(); }
  bool is_finished() const { return last_token() == kEos; }
};

struct SentenceOptions;

/// One sentence to translate.
struct SearchInput {
  std::vector<TokenId> src;     ///< ends in eos
  std::vector<TokenId> prefix;  ///< the target tokens that the translation must begin with
  int64_t id = 0;               ///< selects the sentence's random numbers
  int64_t n_best = 0;           ///< beam search: translations wanted, at most the size of the beam; 0 = those of the settings
  bool is_aligned = true;       ///< beam search: false if nobody asks for its alignment, although the settings have a layer for it
  std::shared_ptr<const SentenceOptions> own = {};  ///< options and constraints of its own; null = those of the settings
  int64_t share = 1;  ///< how many times its tokens count in a batch, because it has more hypotheses than others

  /// Returns the source tokens that it counts as in a batch.
  int64_t batch_tokens() const { return share * static_cast<int64_t>(src.size()); }
};

/// The `n_best` translations of each input, best first.
using SearchResults = std::vector<std::vector<Hypothesis>>;

/// A queue of sentences to translate: a search refills its batch from it. A place is the number of a sentence in the queue.
class SearchQueue {
 public:
  virtual ~SearchQueue() = default;
  /// Takes sentences for a search whose batch holds `tokens` source tokens; returns their places. None if the queue is empty, or while the
  /// batch is more than half full, because encoding few sentences at a time is slow.
  virtual std::vector<size_t> take(int64_t tokens) = 0;
  /// Returns a sentence that was taken and is not finished.
  virtual const SearchInput& input(size_t place) const = 0;
  /// Returns false if nobody waits for the translations of a sentence any more: beam search finishes it, without any, at its next step.
  virtual bool is_wanted(size_t /*place*/) const { return true; }
  /// Stores the translations of a sentence. To be called once for each place that was taken, by the searching thread.
  virtual void finish(size_t place, std::vector<Hypothesis> translations) = 0;

  std::vector<SearchInput> inputs(const std::vector<size_t>& places) const {
    std::vector<SearchInput> inputs;
    inputs.reserve(places.size());
    for (const size_t place : places) inputs.push_back(input(place));
    return inputs;
  }
};

/// The sentences of a text, which searches on several threads may share.
class FixedSearchQueue : public SearchQueue {
 public:
  /// The batch of a search holds at most `batch_tokens` source tokens, or one sentence.
  /// `on_finish` is called by the searching thread for each sentence that is finished.
  FixedSearchQueue(std::vector<SearchInput> inputs, int64_t batch_tokens, std::function<void()> on_finish = {})
      : inputs_(std::move(inputs)), batch_tokens_(batch_tokens), on_finish_(std::move(on_finish)), results_(inputs_.size()) {}
  std::vector<size_t> take(int64_t tokens) override {
    std::vector<size_t> places;
    if (tokens > batch_tokens_ / 2) return places;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (; next_ < inputs_.size(); ++next_) {
      const int64_t length = inputs_[next_].batch_tokens();
      if (tokens > 0 && tokens + length > batch_tokens_) break;
      tokens += length;
      places.push_back(next_);
    }
    return places;
  }
  const SearchInput& input(size_t place) const override { return inputs_[place]; }
  void finish(size_t place, std::vector<Hypothesis> translations) override {
    results_[place] = std::move(translations);
    if (on_finish_) on_finish_();
  }
  /// Returns the translations of all inputs. To be called after all searches have ended.
  SearchResults results() && { return std::move(results_); }

 private:
  const std::vector<SearchInput> inputs_;
  const int64_t batch_tokens_;
  const std::function<void()> on_finish_;
  SearchResults results_;
  std::mutex mutex_;  // guards next_
  size_t next_ = 0;
};

}  // namespace lacuna
