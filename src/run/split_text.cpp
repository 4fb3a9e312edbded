#include "run/split_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/spelling.h"
#include "text/invisible_characters.h"

namespace lacuna {
namespace {

constexpr int64_t kRandomNumbersApart = int64_t{1} << 41;  // more than lines have numbers

void keep_riskier(std::optional<GuardVerdict>& kept, const std::optional<GuardVerdict>& other) {
  if (other && (!kept || other->risk > kept->risk)) kept = other;
}

/// Returns the translation of that rank, or the best if there are fewer.
const Translation& of_rank(const TranslatedLine& line, size_t rank) {
  return line.translations[rank < line.translations.size() ? rank : 0];
}

}  // namespace

std::shared_ptr<const document::Splitting> splitting_for(const LoadedEnsemble& model, const std::string& language,
                                                         const std::string& flag) {
  if (const std::string error = language_code_error(language); !error.empty()) throw UsageError(flag + " is \"" + language + "\"" + error);
  const int64_t positions = model.model->max_positions();
  const int64_t longest =
      std::min(model.options.data.max_length, (positions > 0 ? std::min(positions, kMostSourceTokens) : kMostSourceTokens) - 1);
  const auto pieces = [src = model.vocabularies.src](std::string_view text) { return std::ssize(src->encode(source_text(*src, text))); };
  document::SentenceSplitter splitter(language.empty() ? model.options.data.src_lang : language);
  return std::make_shared<document::Splitting>(document::Splitting{std::move(splitter), std::max<int64_t>(1, longest), pieces});
}

void SplitText::append_to(std::vector<TranslationInput>& lines) const {
  TranslationInput line = line_;
  line.text.clear();
  if (document_->sentences().empty()) lines.push_back(line);
  for (const std::string& sentence : document_->sentences()) {
    line.text = sentence;
    lines.push_back(line);
    line.prefix.clear();
    line.id += kRandomNumbersApart;
  }
}

TranslatedLine SplitText::joined(std::span<const TranslatedLine> translated) const {
  TranslatedLine whole;
  size_t most = 1;
  for (const TranslatedLine& line : translated) {
    most = std::max(most, line.translations.size());
    whole.src_pieces = std::max(whole.src_pieces, line.src_pieces);
    whole.unknown_ratio = std::max(whole.unknown_ratio, line.unknown_ratio);
    whole.is_cropped = whole.is_cropped || line.is_cropped;
    whole.has_unknown_prefix = whole.has_unknown_prefix || line.has_unknown_prefix;
    whole.is_prefix_cropped = whole.is_prefix_cropped || line.is_prefix_cropped;
    whole.is_second_search = whole.is_second_search || line.is_second_search;
  }
  whole.translations.reserve(most);
  for (size_t rank = 0; rank < most; ++rank) {
    Translation one = joined(translated, rank);
    const bool is_there = std::ranges::find(whole.translations, one.text, &Translation::text) != whole.translations.end();
    if (!is_there || are_drawn_) whole.translations.push_back(std::move(one));
  }
  return whole;
}

Translation SplitText::joined(std::span<const TranslatedLine> translated, size_t rank) const {
  std::vector<document::LinkedText> texts;
  texts.reserve(translated.size());
  if (!document_->sentences().empty())
    for (const TranslatedLine& line : translated) texts.push_back({of_rank(line, rank).text, of_rank(line, rank).alignment});
  document::Document::Translated result = document_->translated(texts);
  Translation whole;
  whole.rank = rank;
  double weights = 0;
  for (const size_t i : result.used) {
    const Translation& one = of_rank(translated[i], rank);
    const auto weight = static_cast<double>(one.text.size() + 1);
    weights += weight;
    whole.score += weight * one.score;
    whole.log_prob += one.log_prob;
    if (!whole.token_log_probs.empty() && !one.token_log_probs.empty()) whole.tokens.push_back(kEos);
    whole.tokens.insert(whole.tokens.end(), one.tokens.begin(), one.tokens.end());
    whole.token_log_probs.insert(whole.token_log_probs.end(), one.token_log_probs.begin(), one.token_log_probs.end());
    whole.is_truncated = whole.is_truncated || one.is_truncated;
    keep_riskier(whole.guard, one.guard);
  }
  if (result.used.empty()) whole.guard = of_rank(translated.front(), rank).guard;  // of the empty line
  if (result.used.size() == 1) whole.score = of_rank(translated[result.used.front()], rank).score;
  if (result.used.size() > 1) whole.score /= weights;
  whole.text = std::move(result.text.text);
  whole.alignment = std::move(result.text.links);
  return whole;
}

}  // namespace lacuna
