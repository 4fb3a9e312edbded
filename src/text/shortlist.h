#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/vocabulary.h"

namespace lacuna {

/// A lexical shortlist: the target tokens that may translate a sentence, so that a decoder need not weigh the whole
/// vocabulary. In a file it is text, plain, gzip or zstd:
///
///   lacuna-shortlist 1 <32 hexadecimal digits: XXH3-128 of the vocabularies> <best> <frequent>
///   the ids of at most <frequent> target tokens, candidates of every sentence
///   for each source token, the ids of at most <best> target tokens that translate it, likeliest first
class Shortlist {
 public:
  static constexpr int64_t kMostBest = 1000, kMostFrequent = 100'000;

  /// best [source vocabulary size]: the tokens that translate each source token, likeliest first, at most kMostBest;
  /// frequent: at most kMostFrequent tokens.
  Shortlist(const Vocabularies& vocabularies, std::vector<std::vector<TokenId>> best, std::vector<TokenId> frequent);

  /// What may translate a source: what its tokens may become, the frequent tokens, the prefix, unk, bos and eos, and,
  /// with a shared vocabulary, the source's own tokens, for names. Ascending, each once.
  std::vector<TokenId> candidates(std::span<const TokenId> src, std::span<const TokenId> prefix) const;
  std::string to_text() const;

 private:
  std::string vocabularies_;  // their hash
  bool is_shared_;
  std::vector<std::vector<TokenId>> best_;
  std::vector<TokenId> frequent_;
};

/// Throws DataError, with the place, for a file that is no shortlist, is damaged, or was made for other vocabularies.
std::shared_ptr<const Shortlist> read_shortlist(const std::string& path, const Vocabularies& vocabularies);

}  // namespace lacuna
