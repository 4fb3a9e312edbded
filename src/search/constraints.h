#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"
#include "search/search_queue.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Decides which tokens may not follow a hypothesis: bos, unk (unless allowed), `block_tokens`, eos below `min_length`,
/// and tokens that would repeat an n-gram of the hypothesis.
class Constraints {
 public:
  /// Throws DataError if a piece of `block_tokens` is not in the target vocabulary.
  Constraints(const TranslateOptions& options, const Vocabulary& tgt);
  /// For tests: `blocked` are the ids of the tokens that are never allowed.
  Constraints(const TranslateOptions& options, const std::vector<TokenId>& blocked);

  /// Returns the tokens that may not come next, each once.
  std::vector<TokenId> blocked_after(const Hypothesis& hypothesis) const;
  /// Returns an upper bound of the number of tokens that blocked_after returns for hypotheses of this length.
  int64_t max_blocked(int64_t length) const;

 private:
  TranslateOptions options_;
  std::vector<TokenId> always_;
};

/// What one sentence is searched with, where it differs from the other sentences of the search.
struct SentenceOptions {
  /// Throws as Constraints does.
  SentenceOptions(const TranslateOptions& of_sentence, const Vocabulary& tgt) : options(of_sentence), constraints(of_sentence, tgt) {}

  TranslateOptions options;
  Constraints constraints;
};

/// Returns the longest allowed translation of an input, in tokens with eos: the prefix and what `max_length_ratio`
/// allows after it, at least `min_length`, at most `max_length` and `max_positions` (0 = no limit).
int64_t length_limit(const TranslateOptions& options, const SearchInput& input, int64_t max_positions);

inline constexpr TokenId kNotForced = -1;
/// Returns the only token that may follow: eos at the length limit, the prefix's before that; else kNotForced.
TokenId forced_after(const Hypothesis& hypothesis, const SearchInput& input, int64_t limit);

}  // namespace lacuna
