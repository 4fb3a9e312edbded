#include "analysis/explored_sentence.h"

#include <algorithm>
#include <cmath>

#include "analysis/word_weights.h"

namespace lacuna {
namespace {

std::vector<std::string> pieces_of(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const TokenId id : ids) pieces.push_back(vocabulary.piece(id));
  return pieces;
}

uint8_t level_of(float weight, float scale) {
  if (std::isnan(weight)) return ExploredSentence::kNotVisible;
  if (weight == 0) return 0;
  const long level = std::lround(ExploredSentence::kLevels * std::sqrt(std::abs(weight) / scale));
  return static_cast<uint8_t>(std::clamp<long>(level, 1, ExploredSentence::kLevels) + (weight < 0 ? ExploredSentence::kNegative : 0));
}

}  // namespace

ExploredSentence explored_sentence(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner,
                                   size_t num_places) {
  ExploredSentence sentence;
  sentence.line = pair.line;
  sentence.src_text = pair.src_text;
  sentence.tgt_text = pair.tgt_text;
  sentence.src = pieces_of(*vocabularies.src, pair.src);
  sentence.tgt = pieces_of(*vocabularies.tgt, pair.tgt);
  sentence.src_words = words_of_tokens(*vocabularies.src, pair.src_text, pair.src, joiner);
  sentence.tgt_words = words_of_tokens(*vocabularies.tgt, pair.tgt_text, pair.tgt, joiner);
  sentence.joiner = joiner;
  sentence.maps.resize(num_places);
  return sentence;
}

ExploredSentence::Map rounded_map(const CallWeights& call, int64_t sentence) {
  ExploredSentence::Map map;
  const auto for_each = [&](auto f) {
    for (int64_t head = 0; head < call.num_heads; ++head) {
      const WeightMatrix matrix = call.weights.matrix(sentence, head);
      std::for_each(matrix.values, matrix.values + matrix.queries * matrix.keys, f);
    }
  };
  for_each([&](float weight) { map.scale = std::max(map.scale, std::isnan(weight) ? 0 : std::abs(weight)); });
  const WeightMatrix one = call.weights.matrix(sentence, 0);
  map.levels.reserve(static_cast<size_t>(call.num_heads * one.queries * one.keys));
  for_each([&](float weight) { map.levels.push_back(level_of(weight, map.scale)); });
  return map;
}

}  // namespace lacuna
