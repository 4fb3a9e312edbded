#include "analysis/sentence_pairs.h"

#include <algorithm>

#include "model/ragged_of.h"

namespace lacuna {

int64_t longest_to_look_at(int64_t max_positions) {
  constexpr int64_t kMost = 4096;
  return max_positions > 0 ? std::min(max_positions, kMost) : kMost;
}

void LongPairCount::see(const SentencePair& pair) {
  if (!pair.is_long || pair.is_empty()) return;
  if (count == 0) first_line = pair.line;
  ++count;
}

std::string LongPairCount::message(const std::string& fate, int64_t pairs, int64_t max_tokens) const {
  return std::to_string(count) + " of " + std::to_string(pairs) + " pairs " + fate + ": a side has more than " +
         std::to_string(max_tokens) + " tokens (the model's table of positions, or what can be looked at); the first is line " +
         std::to_string(first_line + 1);
}

PairReader::PairReader(const std::string& src, const std::string& tgt, Vocabularies vocabularies, int64_t max_tokens, LongPairs long_pairs)
    : reader_({"", src, tgt, 1}), vocabularies_(std::move(vocabularies)), max_tokens_(max_tokens), long_pairs_(long_pairs) {}

std::vector<SentencePair> PairReader::next(size_t count) {
  std::vector<SentencePair> pairs;
  SentencePair pair;
  while (pairs.size() < count && reader_.next(pair.src_text, pair.tgt_text)) {
    pair.line = reader_.line_number() - 1;
    pair.is_long = false;
    pair.src = ids_of(*vocabularies_.src, pair.src_text, reader_.src_place(), pair.is_long);
    pair.tgt = ids_of(*vocabularies_.tgt, pair.tgt_text, reader_.tgt_place(), pair.is_long);
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<TokenId> PairReader::ids_of(const Vocabulary& vocabulary, const std::string& line, const std::string& place,
                                        bool& is_long) const {
  std::vector<TokenId> ids = vocabulary.encode(line);
  if (!ids.empty()) ids.push_back(kEos);
  if (static_cast<int64_t>(ids.size()) <= max_tokens_) return ids;
  if (long_pairs_ == LongPairs::kRefuse)
    throw DataError(place + ": has " + std::to_string(ids.size()) + " tokens; expected at most " + std::to_string(max_tokens_) +
                    " (the model's table of positions, or what can be scored or looked at): split the line or leave it out");
  is_long = true;
  return ids;
}

std::vector<std::vector<const SentencePair*>> batches_of(const std::vector<SentencePair>& pairs, int64_t batch_tokens) {
  std::vector<std::vector<const SentencePair*>> batches;
  size_t tokens = 0;
  for (const SentencePair& pair : pairs) {
    if (pair.is_left_out()) continue;
    const size_t more = std::max(pair.src.size(), pair.tgt.size());
    if (batches.empty() || tokens + more > static_cast<size_t>(batch_tokens)) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(&pair);
    tokens += more;
  }
  return batches;
}

RaggedPairs ragged_pairs(const std::vector<const SentencePair*>& pairs, at::Device device) {
  std::vector<std::vector<TokenId>> sources, targets;
  for (const SentencePair* pair : pairs) {
    sources.push_back(pair->src);
    targets.push_back(pair->tgt);
  }
  return {ragged_of(sources, device), ragged_of(targets, device)};
}

}  // namespace lacuna
