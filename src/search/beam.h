#pragma once

#include <cstdint>
#include <vector>

#include "search/search.h"

namespace lacuna {

/// One way to go on from a live hypothesis.
struct Candidate {
  int32_t row = 0;  ///< of the live hypothesis
  TokenId token = 0;
  float token_log_prob = 0;  ///< as the model gave it
  double log_prob = 0;       ///< of the whole hypothesis, after the repetition penalty
  bool is_forced = false;    ///< eos, because the length limit is met or nothing else is allowed
};

/// The live and finished hypotheses of the sentences under way. Live ones stand in the order of the decoder cache's rows: sentence by
/// sentence, best first.
class Beams {
 public:
  /// Sentences come from the queue, and their translations go there.
  Beams(SearchQueue& queue, const SearchSettings& settings, int64_t max_positions)
      : queue_(queue), settings_(settings), max_positions_(max_positions) {}

  /// Begins on more sentences, behind those under way.
  void add(const std::vector<size_t>& places);
  bool all_finished() const { return live_.empty(); }
  /// Source tokens of the sentences under way.
  int64_t src_tokens() const;
  std::vector<TokenId> last_tokens() const;
  /// Ways to go on, best first, of each sentence: those that can be taken.
  using SentenceCandidates = std::vector<std::vector<Candidate>>;
  /// What the model says of the live hypotheses. It isn't asked about those whose ways can't be taken.
  SentenceCandidates candidates(const Logits& logits) const;
  /// Takes the best candidates; returns the rows that the new live hypotheses continue. Sentences that are done are given to the queue and
  /// forgotten. `alignment` [rows] may be empty.
  std::vector<int32_t> extend(const SentenceCandidates& candidates, const std::vector<std::vector<float>>& alignment);

 private:
  struct Sentence {
    size_t place = 0;  // in the queue
    const SearchInput* input = nullptr;
    std::vector<Hypothesis> finished;
    int64_t limit = 0;
  };

  /// What one sentence goes on with.
  struct Beam {
    std::vector<Hypothesis> live;
    std::vector<int32_t> parents;
  };

  /// Where each sentence's begin among these rows, and where the last one's end: [sentences + 1].
  std::vector<size_t> borders(const std::vector<int32_t>& rows) const;
  /// Adds what the model says of these rows, sentence by sentence, to the candidates so far.
  void look_at(const std::vector<int32_t>& rows, const Logits& logits, SentenceCandidates& all) const;
  /// False if no way to go on from it can be taken beside these candidates of its sentence.
  bool may_matter(const Hypothesis& hypothesis, const std::vector<Candidate>& candidates) const;
  /// Finishes some of the candidates of a sentence and keeps others; none if the sentence is done.
  Beam extended(Sentence& sentence, const std::vector<Candidate>& candidates, const std::vector<AlignmentRow>& alignment);
  /// Calls f(s) for each sentence, on all threads.
  template <class F>
  void for_sentences(F f) const;
  /// n_best of its translations, best first.
  std::vector<Hypothesis> best_finished(Sentence sentence) const;
  bool is_done(const Sentence& sentence, const std::vector<Hypothesis>& live) const;
  /// `i` of the rows that `best` is of.
  std::vector<Candidate> best_of_row(int32_t row, size_t i, const BestTokens& best) const;
  TokenId forced_token(int32_t row) const;
  Candidate forced_candidate(int32_t row, TokenId token, float log_prob) const;
  int64_t tokens_to_ask(int64_t wanted, int64_t vocab_size) const;
  Hypothesis continued(const Candidate& candidate, const std::vector<AlignmentRow>& alignment) const;

  SearchQueue& queue_;
  const SearchSettings& settings_;
  const int64_t max_positions_;
  std::vector<Sentence> sentences_;
  std::vector<Hypothesis> live_;
  std::vector<int32_t> sentence_of_row_;
};

}  // namespace lacuna
