#include "document/paragraph.h"

#include <algorithm>
#include <utility>

#include "document/characters.h"

namespace lacuna::document {
namespace {

/// Returns true if words of the character's language are separated by spaces.
bool has_spaces_around(UChar32 character) {
  const int32_t width = u_getIntPropertyValue(character, UCHAR_EAST_ASIAN_WIDTH);
  const bool is_wide = width == U_EA_WIDE || width == U_EA_FULLWIDTH;
  return !is_wide || u_getIntPropertyValue(character, UCHAR_HANGUL_SYLLABLE_TYPE) != U_HST_NOT_APPLICABLE;
}

bool needs_space_between(std::string_view first, std::string_view second) {
  if (first.empty() || second.empty()) return false;
  const UChar32 last = character_before(first, first.size()), next = character_at(second, 0);
  return !is_space(last) && !is_space(next) && has_spaces_around(last) && has_spaces_around(next);
}

bool has_letters(std::string_view text) {
  for (size_t at = 0; at < text.size(); at = next_character(text, at))
    if (u_isalpha(character_at(text, at)) != 0) return true;
  return false;
}

/// Returns a text that is its own translation, each of its words linked with itself.
LinkedText linked_with_itself(std::string text) {
  LinkedText linked{std::move(text)};
  const auto words = static_cast<int32_t>(words_of(linked.text).size());
  for (int32_t word = 0; word < words; ++word) linked.links.emplace_back(word, word);
  return linked;
}

}  // namespace

Paragraph::Paragraph(const std::vector<TextPart>& parts, const Splitting& how) : stand_ins_(parts) {
  const std::string& text = stand_ins_.text();
  for (const Span sentence : how.splitter.sentences(text))
    for (const Span part : cut_sentence(text, sentence, how.longest, how.pieces, stand_ins_.places())) add_sentence(part);
}

Paragraph::Paragraph(const std::vector<TextPart>& parts) : stand_ins_(parts) {
  const Span all = trimmed(stand_ins_.text(), {0, stand_ins_.text().size()});
  if (all.size() > 0) add_sentence(all);
}

void Paragraph::add_sentence(Span place) {
  const std::string& text = stand_ins_.text();
  const std::vector<Span>& kept = stand_ins_.places();
  Sentence sentence{place};
  const auto first = std::ranges::lower_bound(kept, place.begin, {}, &Span::begin);
  sentence.first_kept = static_cast<size_t>(first - kept.begin());
  size_t end = place.begin;
  const auto add_between = [&](Span between) {
    if (has_letters(between.of(text))) sentence.between.push_back(trimmed(text, between));
  };
  for (auto one = first; one != kept.end() && one->end <= place.end; ++one) {
    ++sentence.num_kept;
    add_between({end, one->begin});
    end = one->end;
  }
  if (sentence.num_kept > 0) add_between({end, place.end});
  sentence.has_terms = stand_ins_.has_terms(sentence.first_kept, sentence.num_kept);
  sentences_.push_back(std::move(sentence));
}

void Paragraph::append_to(std::vector<std::string>& sentences) {
  const std::string& text = stand_ins_.text();
  for (Sentence& sentence : sentences_) {
    sentence.first = sentences.size();
    if (sentence.num_kept > 0 && sentence.between.empty()) continue;  // nothing but kept parts
    sentences.push_back(stand_ins_.with_terms(sentence.place));
    if (!stand_ins_.are_all_terms(sentence.first_kept, sentence.num_kept))
      for (const Span between : sentence.between) sentences.emplace_back(between.of(text));
  }
}

void Paragraph::add_translation(std::span<const LinkedText> translations, LinkedTextJoiner& joiner, std::vector<size_t>& used) const {
  add(translations, joiner, used, true);
}

void Paragraph::add_marked_translation(std::span<const LinkedText> translations, LinkedTextJoiner& joiner,
                                       std::vector<size_t>& used) const {
  add(translations, joiner, used, false);
}

void Paragraph::add(std::span<const LinkedText> translations, LinkedTextJoiner& joiner, std::vector<size_t>& used, bool is_restored) const {
  const std::string& text = stand_ins_.text();
  size_t end = 0;
  for (const Sentence& sentence : sentences_) {
    const Span place = sentence.place;
    const std::string source = stand_ins_.marked(place);
    LinkedText translation = marked_translation(sentence, translations, used);
    joiner.add_common({Span{end, place.begin}.of(text)});
    if (is_restored) translation = stand_ins_.restored(source, translation);
    if (end > 0 && end == place.begin && needs_space_between(joiner.text(), translation.text)) joiner.add_target(" ");
    joiner.add(is_restored ? stand_ins_.restored_source(source) : source, translation);
    end = place.end;
  }
  joiner.add_common(Span{end, text.size()}.of(text));
}

/// Returns the translation of a sentence with marks; adds the numbers of those it is made of to `used`.
LinkedText Paragraph::marked_translation(const Sentence& sentence, std::span<const LinkedText> translations,
                                         std::vector<size_t>& used) const {
  if (sentence.num_kept > 0 && sentence.between.empty()) return linked_with_itself(stand_ins_.marked(sentence.place));
  const LinkedText& whole = translations[sentence.first];
  if (sentence.num_kept == 0) {
    used.push_back(sentence.first);
    return whole;
  }
  auto marked = stand_ins_.marked(stand_ins_.with_terms(sentence.place), whole, sentence.first_kept, sentence.num_kept);
  if (marked) {
    used.push_back(sentence.first);
    if (!sentence.has_terms) return std::move(*marked);
    return stand_ins_.marked_terms(sentence.place, *marked, sentence.first_kept, sentence.num_kept);
  }
  for (size_t i = 1; i <= sentence.between.size(); ++i) used.push_back(sentence.first + i);
  return from_parts(sentence, translations.subspan(sentence.first + 1));
}

/// Returns the sentence with the texts between its kept parts translated.
LinkedText Paragraph::from_parts(const Sentence& sentence, std::span<const LinkedText> translations) const {
  const std::string& text = stand_ins_.text();
  LinkedTextJoiner joiner;
  size_t end = sentence.place.begin;
  const auto add_kept = [&](Span kept) { joiner.add(kept.of(text), linked_with_itself(stand_ins_.marked(kept))); };
  for (size_t i = 0; i < sentence.between.size(); ++i) {
    const Span between = sentence.between[i];
    add_kept({end, between.begin});
    const bool loses_punctuation =
        u_isalnum(character_at(text, between.begin)) == 0 && u_isalnum(character_at(translations[i].text, 0)) != 0;
    if (loses_punctuation && needs_space_between(joiner.text(), translations[i].text)) joiner.add_target(" ");
    joiner.add(between.of(text), translations[i]);
    end = between.end;
  }
  add_kept({end, sentence.place.end});
  return std::move(joiner).joined();
}

}  // namespace lacuna::document
