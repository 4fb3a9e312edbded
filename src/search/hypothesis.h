#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "text/vocabulary.h"

namespace lacuna {

/// Cross-attention weights of one target token over the source tokens [source length], averaged over heads. Shared by the hypotheses that
/// have the token in common.
using AlignmentRow = std::shared_ptr<const std::vector<float>>;

/// A translation in target tokens, finished or under way.
struct Hypothesis {
  std::vector<TokenId> tokens;          ///< [n] without bos; a finished one ends in eos
  std::vector<float> token_log_probs;   ///< [n] as the model gave them
  double log_prob = 0;                  ///< sum of token_log_probs; of beam search after the repetition penalty
  double score = 0;                     ///< of a finished one: log_prob / length penalty
  std::vector<AlignmentRow> alignment;  ///< [n], or empty where none is asked for
  bool is_truncated = false;            ///< its eos was forced: it met the length limit, or no other token was allowed
  int32_t draw = 0;                     ///< sampling: which of the sentence's draws it is

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  TokenId last_token() const { return tokens.empty() ? kBos : tokens.back(); }
  bool is_finished() const { return last_token() == kEos; }
};

}  // namespace lacuna
