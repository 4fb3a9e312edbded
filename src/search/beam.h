#pragma once

#include <cstdint>
#include <vector>

#include "search/search.h"

namespace lacuna {

/// A continuation of a live hypothesis by one token.
struct Candidate {
  int32_t row = 0;  ///< the live hypothesis: its row in the decoder cache
  TokenId token = 0;
  float token_log_prob = 0;  ///< as the model gave it
  double log_prob = 0;       ///< the whole hypothesis', after the repetition penalty
  bool is_forced = false;    ///< eos, at the length limit or because nothing else is allowed
};

/// The live and finished hypotheses of the sentences in the batch. Live ones are in the order of the decoder cache's
/// rows: sentence by sentence, best first.
class Beams {
 public:
  /// Reads sentences from the queue and stores their translations in it.
  Beams(SearchQueue& queue, const SearchSettings& settings, int64_t max_positions)
      : queue_(queue), settings_(settings), max_positions_(max_positions) {}

  /// Adds sentences of the queue; their rows follow the current ones.
  void add(const std::vector<size_t>& places);
  bool all_finished() const { return live_.empty(); }
  /// Returns the number of source tokens of the sentences in the batch.
  int64_t src_tokens() const;
  std::vector<TokenId> last_tokens() const;
  /// The candidates of each sentence, best first, as many as a step may need.
  using SentenceCandidates = std::vector<std::vector<Candidate>>;
  /// Returns the best continuations of the live hypotheses. Skips hypotheses none of whose candidates can be taken.
  SentenceCandidates candidates(const Logits& logits) const;
  /// Extends hypotheses by the best candidates; returns the row that each new live hypothesis continues. Moves the
  /// translations of finished sentences to the queue. `alignment` [rows] may be empty.
  std::vector<int32_t> extend(const SentenceCandidates& candidates, const std::vector<std::vector<float>>& alignment);

 private:
  struct Sentence {
    size_t place = 0;  // in the queue
    const SearchInput* input = nullptr;
    std::vector<Hypothesis> finished;
    int64_t limit = 0;
  };

  /// The live hypotheses of one sentence after a step, and the row that each continues.
  struct Beam {
    std::vector<Hypothesis> live;
    std::vector<int32_t> parents;
  };

  /// Returns [sentences + 1]: the index in `rows` (ascending) of each sentence's first row, and finally the number of
  /// rows.
  std::vector<size_t> borders(const std::vector<int32_t>& rows) const;
  /// Adds the candidates of these rows to those of their sentences.
  void add_candidates(const std::vector<int32_t>& rows, const Logits& logits, SentenceCandidates& all) const;
  /// Returns false if no candidate of the hypothesis can be taken, given these other candidates of its sentence.
  bool may_matter(const Hypothesis& hypothesis, const std::vector<Candidate>& candidates) const;
  /// Turns the candidates of a sentence into finished and live hypotheses; returns an empty beam if the sentence is
  /// finished.
  Beam extended(Sentence& sentence, const std::vector<Candidate>& candidates, const std::vector<AlignmentRow>& alignment);
  /// Calls f(s) for each sentence, on all threads.
  template <class F>
  void for_sentences(F f) const;
  /// Returns the n_best finished hypotheses of a sentence, best first.
  std::vector<Hypothesis> best_finished(Sentence sentence) const;
  /// Returns true if no live hypothesis may still enter the n_best: by the bound at the length limit, or, once
  /// `beam_size` hypotheses are finished, by the score that it would have at its length now.
  bool is_done(const Sentence& sentence, const std::vector<Hypothesis>& live) const;
  /// Returns the candidates of a row, whose index in `best` is i.
  std::vector<Candidate> best_of_row(int32_t row, size_t i, const BestTokens& best) const;
  TokenId forced_token(int32_t row) const;
  Candidate forced_candidate(int32_t row, TokenId token, float log_prob) const;
  int64_t tokens_needed(int64_t wanted, int64_t vocab_size) const;
  Hypothesis continued(const Candidate& candidate, const std::vector<AlignmentRow>& alignment) const;

  SearchQueue& queue_;
  const SearchSettings& settings_;
  const int64_t max_positions_;
  std::vector<Sentence> sentences_;
  std::vector<Hypothesis> live_;
  std::vector<int32_t> sentence_of_row_;
};

}  // namespace lacuna
