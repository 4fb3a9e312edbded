#include "analysis/word_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/joiner.h"

namespace lacuna {
namespace {

/// The unit of each piece before eos, of the words of all tokens; `count` is the number of units.
std::vector<int32_t> units_of(std::vector<int32_t> words, int32_t& count) {
  count = words.back();  // eos has the number of words
  words.pop_back();
  return words;
}

}  // namespace

const char* name_of(AlignmentStep step) {
  return step == AlignmentStep::kNormal ? "normal" : "shifted";
}

std::vector<int32_t> words_of_tokens(const Vocabulary& vocabulary, const std::string& line, const std::vector<TokenId>& ids,
                                     const std::string& joiner) {
  std::vector<int32_t> words = vocabulary.words_of(line, ids);
  if (joiner.empty()) return words;
  const std::vector<int32_t> whole = joined_words(line, joiner);
  for (int32_t& word : words) word = whole.at(static_cast<size_t>(word));
  return words;
}

AlignmentUnits word_units(const SentencePair& pair, const Vocabularies& vocabularies, const std::string& joiner) {
  AlignmentUnits units;
  units.src = units_of(words_of_tokens(*vocabularies.src, pair.src_text, pair.src, joiner), units.src_count);
  units.tgt = units_of(words_of_tokens(*vocabularies.tgt, pair.tgt_text, pair.tgt, joiner), units.tgt_count);
  return units;
}

AlignmentUnits piece_units(const SentencePair& pair) {
  AlignmentUnits units;
  units.src.resize(pair.src.size() - 1);
  units.tgt.resize(pair.tgt.size() - 1);
  std::iota(units.src.begin(), units.src.end(), 0);
  std::iota(units.tgt.begin(), units.tgt.end(), 0);
  units.src_count = static_cast<int32_t>(units.src.size());
  units.tgt_count = static_cast<int32_t>(units.tgt.size());
  return units;
}

UnitWeights::UnitWeights(const WeightMatrix& weights, const AlignmentUnits& units, AlignmentStep step)
    : src_count_(units.src_count), values_(static_cast<size_t>(units.src_count) * static_cast<size_t>(units.tgt_count), 0.0) {
  std::vector<int32_t> rows(static_cast<size_t>(units.tgt_count), 0);  // pieces of each target unit
  for (const int32_t unit : units.tgt) rows[static_cast<size_t>(unit)] += 1;
  const size_t first_row = step == AlignmentStep::kShifted ? 1 : 0;
  for (size_t t = 0; t < units.tgt.size(); ++t) {
    const std::span<const float> row = weights.row(static_cast<int64_t>(t + first_row));
    const int32_t unit = units.tgt[t];
    for (size_t s = 0; s < units.src.size(); ++s)
      if (row[s] != 0 && !std::isnan(row[s]))
        values_[index(unit, units.src[s])] += static_cast<double>(row[s]) / rows[static_cast<size_t>(unit)];
  }
}

void UnitWeights::add(const UnitWeights& other) {
  src_count_ = other.src_count_;
  values_.resize(other.values_.size(), 0.0);
  for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

Links UnitWeights::links() const {
  Links links;
  for (size_t begin = 0; begin < values_.size(); begin += static_cast<size_t>(src_count_)) {
    const auto row = values_.begin() + static_cast<ptrdiff_t>(begin);
    const auto best = std::max_element(row, row + src_count_);
    if (*best > 0) links.emplace_back(static_cast<int32_t>(best - row), static_cast<int32_t>(begin / static_cast<size_t>(src_count_)));
  }
  return links;
}

std::vector<UnitWeights> unit_weights_of_heads(const CallWeights& call, int64_t sentence, const AlignmentUnits& units, AlignmentStep step) {
  std::vector<UnitWeights> weights;
  UnitWeights layer;
  for (int64_t head = 0; head < call.num_heads; ++head) {
    weights.emplace_back(call.weights.matrix(sentence, head), units, step);
    layer.add(weights.back());
  }
  weights.push_back(std::move(layer));
  return weights;
}

}  // namespace lacuna
