#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/links.h"
#include "analysis/sentence_pairs.h"
#include "analysis/weight_gatherer.h"

namespace lacuna {

/// The weights of a sentence in one layer at one site, rounded to a byte each.
struct RoundedMap {
  /// A weight is scale * (level / kLevels)²; the level of one below 0 has kNegative added, and level 0 is a weight of exactly 0.
  /// kNotVisible marks keys that the query does not see.
  static constexpr int kLevels = 63;
  static constexpr uint8_t kNotVisible = 64, kNegative = 128;
  float scale = 0;              ///< the largest magnitude
  std::vector<uint8_t> levels;  ///< [heads, queries, keys]
};
RoundedMap rounded_map(const CallWeights& call, int64_t sentence);

/// A pair whose weights the report shows.
struct ExploredSentence {
  int64_t line = 0;
  std::string src_text, tgt_text;
  std::vector<std::string> src, tgt;          ///< pieces, eos last
  std::vector<int32_t> src_words, tgt_words;  ///< the word of each piece; eos is one by itself
  std::string joiner;                         ///< the mark at the end of pieces whose word goes on; empty = none
  std::optional<GoldLinks> gold;              ///< between words, where gold links are given
  std::vector<float> scales;                  ///< of its maps, by place
  std::string levels;                         ///< of its maps, one behind the other, deflated (zlib)
};

/// Sentences kept for the report, weights packed as the page holds them: more than it may have room for beside another model's.
class ExploredSentences {
 public:
  /// The most weights of a pair, over all places, that are rounded: the report would have no room for more.
  static constexpr int64_t kMostWeights = 1 << 24;
  /// The most bytes of a sentence's deflated levels, and of all that is kept.
  static constexpr size_t kMostPackedBytes = 2025000, kMostBytes = 8 * kMostPackedBytes;

  explicit ExploredSentences(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  /// Keeps the pair; only its line if there is no room for it or `maps` is empty. After the first pair that exceeds the room for all,
  /// nothing more is kept. REQUIRES: lines ascend.
  void add(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner, const std::vector<RoundedMap>& maps,
           const std::optional<GoldLinks>& gold = {});
  /// True if nothing more is kept.
  bool is_full() const { return is_full_; }
  /// Returns the number of pairs added.
  size_t size() const { return kept.size() + omitted.size(); }

  std::vector<ExploredSentence> kept;
  std::vector<int64_t> omitted;  ///< lines of the others, from 0

 private:
  size_t most_bytes_, bytes_ = 0;
  bool is_full_ = false;
};

/// Returns the piece of each token.
std::vector<std::string> pieces_of(const Vocabulary& vocabulary, const std::vector<TokenId>& ids);

}  // namespace lacuna
