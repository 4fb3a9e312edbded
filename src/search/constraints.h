#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"
#include "search/hypothesis.h"
#include "search/search_queue.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Which tokens may not follow a hypothesis: bos and unk (unless allowed), `block_tokens`, eos below `min_length`, and what would complete
/// an n-gram that the hypothesis holds already.
class Constraints {
 public:
  /// Throws DataError if a piece of `block_tokens` is not in the target vocabulary.
  Constraints(const TranslateOptions& options, const Vocabulary& tgt);
  /// For tests: `blocked` holds the ids of the tokens that may never come.
  Constraints(const TranslateOptions& options, const std::vector<TokenId>& blocked);

  /// Tokens that may not come next, each once.
  std::vector<TokenId> blocked_after(const Hypothesis& hypothesis) const;
  /// At least as many as blocked_after gives for any hypothesis of this length.
  int64_t max_blocked(int64_t length) const;

 private:
  TranslateOptions options_;
  std::vector<TokenId> always_;
};

/// Longest translation of this input, in tokens with eos: the prefix and what `max_length_ratio` allows behind it, or `min_length` if that
/// is more; never beyond `max_length` and the model's positions (0 = any number).
int64_t length_limit(const TranslateOptions& options, const SearchInput& input, int64_t max_positions);

inline constexpr TokenId kNotForced = -1;
/// The only token that may follow: eos where that meets the limit, before it the next of the prefix; else kNotForced.
TokenId forced_after(const Hypothesis& hypothesis, const SearchInput& input, int64_t limit);

}  // namespace lacuna
