#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/sentence_pairs.h"
#include "analysis/weight_gatherer.h"

namespace lacuna {

/// A pair whose weights the report shows, at one byte a weight.
struct ExploredSentence {
  /// A weight is scale * (level / kLevels)²; the level of one below 0 has kNegative added, and level 0 is a weight of exactly 0.
  /// kNotVisible marks keys that the query does not see.
  static constexpr int kLevels = 63;
  static constexpr uint8_t kNotVisible = 64, kNegative = 128;
  /// The most weights of a pair, over all places; a pair with more is kept without weights, as the report has no room for them.
  static constexpr int64_t kMostWeights = 1 << 24;
  struct Map {
    float scale = 0;              ///< the largest magnitude
    std::vector<uint8_t> levels;  ///< [heads, queries, keys]
  };

  int64_t line = 0;
  std::string src_text, tgt_text;
  std::vector<std::string> src, tgt;          ///< pieces, eos last
  std::vector<int32_t> src_words, tgt_words;  ///< the word of each piece; eos is one by itself
  std::string joiner;                         ///< that pieces of a word end with, if they do
  std::vector<Map> maps;                      ///< by place; none if it is too large
  bool is_too_large() const { return maps.empty(); }
};

/// The pair with its tokens, and with num_places maps that are still empty.
ExploredSentence explored_sentence(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner,
                                   size_t num_places);

/// The weights of a sentence, rounded.
ExploredSentence::Map rounded_map(const CallWeights& call, int64_t sentence);

}  // namespace lacuna
