#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/options.h"
#include "search/search_queue.h"
#include "text/vocabulary.h"

/// A guard against hallucination: numbers that tell whether a translation is one of its source, from what the search knows anyway.
namespace lacuna {

/// The n-grams of a translation that is searched again come once each.
inline constexpr int64_t kRetryNgramSize = 3;

/// A translation beside its source, in tokens with eos.
struct GuardedPair {
  std::span<const TokenId> src, tgt;
  std::span<const float> token_log_probs;   ///< [tgt]
  std::span<const AlignmentRow> attention;  ///< [tgt], or none if it was not looked at
};

/// A limit that a measure exceeds.
struct GuardFlag {
  std::string measure;  ///< its name
  double value = 0, limit = 0;
  bool is_at_most = true;  ///< false: the limit is the least that is allowed
};

/// The measures of one translation, and what they exceed.
struct GuardVerdict {
  double length_ratio = 1;           ///< tokens of the translation for each of the source
  double loop = 0;                   ///< loop_share of the translation less that of the source, at least 0
  double token_log_prob = 0;         ///< mean log-probability of a token, in nats
  std::optional<double> unattended;  ///< share of source tokens, eos left out, that get less attention than kAttended in all
  std::optional<double> null_rate;   ///< share of the translation's tokens at which no head attends to anything
  double risk = 0;                   ///< the largest share of a limit that a measure uses up: above 1, one is exceeded
  std::vector<GuardFlag> flags;
};

/// The weight that a source token gets at least if it is translated, summed over the translation's tokens (Berard et al. 2019,
/// arXiv:1907.06488; Guerreiro et al. 2023, arXiv:2208.05309).
inline constexpr double kAttended = 0.2;

/// Returns the share of tokens that belong to an n-gram, n up to 64, that stands directly before, too.
double loop_share(std::span<const TokenId> tokens);

/// Returns true if an n-gram of kRetryNgramSize comes twice.
bool repeats_itself(std::span<const TokenId> tokens);

/// Returns the measures of a pair and which of them exceed the limits.
GuardVerdict judge(const GuardedPair& pair, const GuardLimits& limits);

}  // namespace lacuna
