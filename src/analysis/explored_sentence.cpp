#include "analysis/explored_sentence.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "analysis/word_weights.h"
#include "base/error.h"

namespace lacuna {
namespace {

uint8_t level_of(float weight, float scale) {
  if (std::isnan(weight)) return RoundedMap::kNotVisible;
  if (weight == 0) return 0;
  const long level = std::lround(RoundedMap::kLevels * std::sqrt(std::abs(weight) / scale));
  return static_cast<uint8_t>(std::clamp<long>(level, 1, RoundedMap::kLevels) + (weight < 0 ? RoundedMap::kNegative : 0));
}

/// Deflates bytes. Null if the result would take more than `most` bytes.
std::optional<std::string> deflated(const std::vector<uint8_t>& bytes, size_t most) {
  constexpr int kLevel = 6;  // the highest takes several times as long and saves a few percent
  uLongf size = std::min<uLongf>(compressBound(bytes.size()), most);
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes.data(), bytes.size(), kLevel);
  if (result == Z_BUF_ERROR) return {};
  if (result != Z_OK) throw MachineError("zlib could not pack the report's weights; this is a fault of the program");
  packed.resize(size);
  packed.shrink_to_fit();
  return packed;
}

/// The approximate memory of a pair without its weights.
size_t bytes_of(const ExploredSentence& sentence) {
  size_t bytes = sizeof(ExploredSentence) + sentence.src_text.size() + sentence.tgt_text.size();
  for (const auto* pieces : {&sentence.src, &sentence.tgt})
    for (const std::string& piece : *pieces) bytes += sizeof(std::string) + piece.size() + sizeof(int32_t);
  if (sentence.gold) bytes += sizeof(Link) * (sentence.gold->sure.size() + sentence.gold->possible.size());
  return bytes;
}

}  // namespace

RoundedMap rounded_map(const CallWeights& call, int64_t sentence) {
  RoundedMap map;
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

void ExploredSentences::add(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner,
                            const std::vector<RoundedMap>& maps, const std::optional<GoldLinks>& gold) {
  ExploredSentence sentence;
  std::vector<uint8_t> levels;
  for (const RoundedMap& map : maps) {
    levels.insert(levels.end(), map.levels.begin(), map.levels.end());
    sentence.scales.push_back(map.scale);
  }
  std::optional<std::string> packed;
  if (!maps.empty() && !is_full_) packed = deflated(levels, kMostPackedBytes);
  if (!packed) {
    omitted.push_back(pair.line);
    return;
  }
  sentence.line = pair.line;
  sentence.src_text = pair.src_text;
  sentence.tgt_text = pair.tgt_text;
  sentence.src = pieces_of(*vocabularies.src, pair.src);
  sentence.tgt = pieces_of(*vocabularies.tgt, pair.tgt);
  sentence.src_words = words_of_tokens(*vocabularies.src, pair.src_text, pair.src, joiner);
  sentence.tgt_words = words_of_tokens(*vocabularies.tgt, pair.tgt_text, pair.tgt, joiner);
  sentence.joiner = joiner;
  sentence.gold = gold;
  sentence.levels = std::move(*packed);
  bytes_ += bytes_of(sentence) + sentence.levels.size();
  is_full_ = bytes_ > most_bytes_;
  if (is_full_)
    omitted.push_back(pair.line);
  else
    kept.push_back(std::move(sentence));
}

std::vector<std::string> pieces_of(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const TokenId id : ids) pieces.push_back(vocabulary.piece(id));
  return pieces;
}

}  // namespace lacuna
