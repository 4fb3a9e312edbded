#include "analysis/sentence_pairs.h"

#include <algorithm>

#include "base/error.h"
#include "base/ragged.h"
#include "config/on_bad_line.h"
#include "model/logits.h"
#include "text/invisible_characters.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

bool has_many_words(const std::string& line) {
  constexpr size_t kMost = kMostToLookAt;
  return line.size() > kMost && joined_words(line, "").back() > kMostToLookAt;  // no need to count those of a short line
}

}  // namespace

int64_t longest_to_look_at(int64_t max_positions) {
  return max_positions > 0 ? std::min(max_positions, kMostToLookAt) : kMostToLookAt;
}

void LongPairCount::see(const SentencePair& pair) {
  if (!pair.is_long) return;
  if (count == 0) first_line = pair.line;
  ++count;
}

std::string LongPairCount::message(const std::string& fate, int64_t pairs, int64_t max_tokens) const {
  return std::to_string(count) + " of " + std::to_string(pairs) + " pairs " + fate + ": a side has more than " +
         std::to_string(max_tokens) + " tokens (the model's table of positions, or what can be looked at) or " +
         std::to_string(kMostToLookAt) + " words; the first is line " + std::to_string(first_line + 1);
}

PairReader::PairReader(const std::string& src, const std::string& tgt, Vocabularies vocabularies, int64_t max_tokens, LongPairs long_pairs,
                       OnBadLine bad_lines)
    : reader_(src, tgt), vocabularies_(std::move(vocabularies)), max_tokens_(max_tokens), long_pairs_(long_pairs), bad_lines_(bad_lines) {}

std::vector<SentencePair> PairReader::next(size_t count, int64_t step) {
  std::vector<SentencePair> pairs;
  std::string src, tgt;
  while (pairs.size() < count) {
    try {
      if (!reader_.next(src, tgt)) break;
      if ((reader_.line_number() - 1) % step == 0) pairs.push_back(pair_of(src, tgt));
    } catch (const LineError& error) {
      pass_over(error, bad_lines_);
      SentencePair& pair = pairs.emplace_back();
      pair.line = reader_.line_number() - 1;
      pair.error = error.what();
    }
  }
  return pairs;
}

SentencePair PairReader::pair_of(const std::string& src_line, const std::string& tgt) const {
  const std::string src = source_text(*vocabularies_.src, src_line);
  SentencePair pair;
  pair.line = reader_.line_number() - 1;
  bool is_long = false;
  std::vector<TokenId> src_ids = ids_of(*vocabularies_.src, src, reader_.src_place(), is_long);
  std::vector<TokenId> tgt_ids = ids_of(*vocabularies_.tgt, tgt, reader_.tgt_place(), is_long);
  if (is_long) {
    pair.is_long = !src_ids.empty() && !tgt_ids.empty();
    return pair;
  }
  pair.src_text = src;
  pair.tgt_text = tgt;
  pair.src = std::move(src_ids);
  pair.tgt = std::move(tgt_ids);
  return pair;
}

std::vector<TokenId> PairReader::ids_of(const Vocabulary& vocabulary, const std::string& line, const std::string& place,
                                        bool& is_long) const {
  std::vector<TokenId> ids = vocabulary.encode(line);
  if (!ids.empty()) ids.push_back(kEos);
  const bool fits = static_cast<int64_t>(ids.size()) <= max_tokens_;
  if (!fits && long_pairs_ == LongPairs::kRefuse)
    throw LineError("too long for the model",
                    place + ": has " + std::to_string(ids.size()) + " tokens; expected at most " + std::to_string(max_tokens_) +
                        " (the model's table of positions, or what can be scored or looked at): split the line or leave it out");
  is_long = is_long || !fits || (long_pairs_ == LongPairs::kMark && has_many_words(line));
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

void force_decode(Transformer& model, const RaggedPairs& batch, AttentionProbe& probe) {
  ForwardContext context;
  context.probe = &probe;
  const at::NoGradGuard no_gradients;
  require_numbers(model.decode(model.encode(batch.src, context), batch.tgt, context).values);
}

}  // namespace lacuna
