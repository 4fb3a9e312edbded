#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/vocabulary.h"

namespace lacuna {

/// A target token and the probability that it translates a source token.
struct LexiconEntry {
  TokenId tgt = 0;
  float probability = 0;
  bool operator==(const LexiconEntry&) const = default;
};

/// For each source token its translations, likeliest first; equal ones by id.
using Lexicon = std::vector<std::vector<LexiconEntry>>;

/// Pairs of sentences as ids without eos, end to end.
struct TokenPairs {
  std::vector<TokenId> src, tgt;
  std::vector<int64_t> src_begin = {0}, tgt_begin = {0};  ///< [pairs + 1]

  void add(std::span<const TokenId> source, std::span<const TokenId> target);
  int64_t size() const { return static_cast<int64_t>(src_begin.size()) - 1; }
};

struct LexiconOptions {
  int64_t src_size = 0, tgt_size = 0;  ///< of the vocabularies
  int64_t iterations = 5;
  int64_t kept = 1000;  ///< translations of a source token that an iteration leaves: what bounds memory
  int64_t threads = 1;  ///< they change the time alone, not a bit of the result
};

/// IBM model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.1): each target token is made by one
/// source token of its sentence, or by the empty word, any of them equally likely beforehand;
///
///   t(f | e) = expected number of f made by e / expected number of tokens made by e,
///
/// by expectation maximisation from equal t. Throws DataError if there are no pairs.
Lexicon learn_lexicon(const TokenPairs& pairs, const LexiconOptions& options);

/// Counts links between tokens.
class LinkedTokenCounts {
 public:
  explicit LinkedTokenCounts(int64_t src_size) : counts_(static_cast<size_t>(src_size)) {}
  void add(TokenId src, TokenId tgt) { ++counts_[static_cast<size_t>(src)][tgt]; }
  /// The share of a source token's links that go to each target token; at most `kept`.
  Lexicon lexicon(int64_t kept) const;

 private:
  std::vector<std::unordered_map<TokenId, int64_t>> counts_;
};

}  // namespace lacuna
