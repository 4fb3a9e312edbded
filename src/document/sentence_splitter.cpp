#include "document/sentence_splitter.h"

#include <unicode/ubrk.h>
#include <unicode/uloc.h>
#include <unicode/utext.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "document/abbreviations.h"
#include "document/characters.h"

namespace lacuna::document {
namespace {

void require_success(UErrorCode code, const char* what) {
  if (U_FAILURE(code) != 0) throw MachineError(std::string("ICU cannot ") + what + ": " + u_errorName(code));
}

/// Returns the language of a code by its two letters, or by three where there are no two.
std::string icu_language(const std::string& code) {
  std::array<char, ULOC_LANG_CAPACITY> language = {};
  UErrorCode error = U_ZERO_ERROR;
  uloc_getLanguage(code.c_str(), language.data(), language.size(), &error);
  return U_SUCCESS(error) != 0 ? language.data() : "";
}

/// Returns the word at the end of the text: what stands behind the last space, bracket, quotation mark or full stop.
std::string_view last_word(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const UChar32 character = character_before(text, begin);
    if (u_isalnum(character) == 0 && u_getCombiningClass(character) == 0) break;
    begin = previous_character(text, begin);
  }
  return text.substr(begin);
}

bool all_are(std::string_view word, bool (*is_one)(UChar32)) {
  for (size_t at = 0; at < word.size(); at = next_character(word, at))
    if (!is_one(character_at(word, at))) return false;
  return !word.empty();
}

bool is_digit(UChar32 character) {
  return character >= '0' && character <= '9';
}

bool is_roman_digit(UChar32 character) {
  return character == 'I' || character == 'V' || character == 'X';
}

bool is_small_letter(UChar32 character) {
  return u_islower(character) != 0;
}

/// Returns where a sentence ends whose border is behind the opening brackets of the next one: Unicode's rules take any bracket that follows
/// a full stop at once for a closing one.
size_t without_opening_marks(std::string_view text, size_t border) {
  while (border > 0 && u_charType(character_before(text, border)) == U_START_PUNCTUATION) border = previous_character(text, border);
  return border;
}

/// Returns true if a quotation of Japanese ends, of whose sentence more follows: 「はい。」と言った。
bool is_quoted_in_japanese(std::string_view before, UChar32 next) {
  const UChar32 last = character_before(before, before.size());
  return (last == 0x300D || last == 0x300F) && next >= 0x3041 && next <= 0x309F;
}

bool is_quotation_mark(UChar32 character) {
  const int8_t type = u_charType(character);
  return character == '"' || character == '\'' || type == U_INITIAL_PUNCTUATION || type == U_FINAL_PUNCTUATION ||
         type == U_START_PUNCTUATION || type == U_END_PUNCTUATION;
}

/// Returns true if a text may end a sentence although a number follows: by a mark, and behind a word that is long enough to be no
/// abbreviation.
bool may_end_before_number(std::string_view text) {
  constexpr size_t kShortest = 3;
  while (is_quotation_mark(character_before(text, text.size()))) text.remove_suffix(text.size() - previous_character(text, text.size()));
  const UChar32 last = character_before(text, text.size());
  if (last != '.') return last == '!' || last == '?' || last == 0x2026;
  text.remove_suffix(1);
  return text.ends_with('.') || last_word(text).size() >= kShortest;
}

/// Returns true for a text that begins with a number, or with a dash before what somebody says.
bool begins_with_number_or_dash(std::string_view text) {
  if (is_quotation_mark(character_at(text, 0))) text.remove_prefix(next_character(text, 0));
  const UChar32 first = character_at(text, 0);
  if (is_digit(first)) return true;
  if (first != '-' && first != 0x2013 && first != 0x2014) return false;
  text.remove_prefix(next_character(text, 0));
  return text.starts_with(' ') && text.size() > 1 && (u_isupper(character_at(text, 1)) != 0 || is_quotation_mark(character_at(text, 1)));
}

/// Adds the places in a part of the text where a sentence may begin with a number or a dash. Unicode's rules see none where a small letter
/// follows.
void add_borders_before_numbers(std::string_view text, Span part, std::vector<size_t>& borders) {
  for (size_t at = text.find(' ', part.begin); at < part.end; at = text.find(' ', at)) {
    const size_t begin = std::min(text.find_first_not_of(' ', at), part.end);
    if (begin < part.end && begins_with_number_or_dash(text.substr(begin)) && may_end_before_number(text.substr(0, at)))
      borders.push_back(begin);
    at = begin;
  }
}

/// Returns true if nothing but space, an opening mark or a full stop stands before the word at the end of a text, as it does not in
/// "Sotheby's" and "km/h".
bool stands_alone(std::string_view text, std::string_view last) {
  const UChar32 before = character_before(text, text.size() - last.size());
  const int8_t type = u_charType(before);
  return text.size() == last.size() || is_space(before) || before == '.' || before == '"' || before == 0xBB ||
         type == U_START_PUNCTUATION || type == U_INITIAL_PUNCTUATION;
}

/// Returns true for a number such as "12." or "(3)." that a text begins with: that of an item in a list.
bool is_item_number(std::string_view text) {
  constexpr size_t kLongest = 6;
  return text.size() <= kLongest && text.find_first_not_of("0123456789().") == std::string_view::npos;
}

}  // namespace

void SentenceSplitter::Close::operator()(UBreakIterator* iterator) const {
  ubrk_close(iterator);
}

SentenceSplitter::SentenceSplitter(const std::string& language) : language_(icu_language(language)) {
  UErrorCode error = U_ZERO_ERROR;
  rules_.reset(ubrk_open(UBRK_SENTENCE, language_.c_str(), nullptr, 0, &error));
  require_success(error, "find borders of sentences");
}

std::vector<Span> SentenceSplitter::sentences(std::string_view text) const {
  UErrorCode error = U_ZERO_ERROR;
  const Iterator iterator(ubrk_clone(rules_.get(), &error));
  const std::unique_ptr<UText, decltype(&utext_close)> bytes(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error), &utext_close);
  ubrk_setUText(iterator.get(), bytes.get(), &error);
  require_success(error, "find borders of sentences");
  std::vector<size_t> borders;
  for (int32_t border = ubrk_first(iterator.get()); (border = ubrk_next(iterator.get())) != UBRK_DONE;) {
    add_borders_before_numbers(text, {borders.empty() ? 0 : borders.back(), static_cast<size_t>(border)}, borders);
    borders.push_back(without_opening_marks(text, static_cast<size_t>(border)));
  }
  std::vector<Span> sentences;
  size_t begin = 0;
  for (const size_t border : borders) {
    const Span sentence = trimmed(text, {begin, std::max(begin, border)});
    begin = std::max(begin, border);
    if (sentence.size() == 0) continue;
    if (!sentences.empty() && is_within_sentence(sentences.back().of(text), text.substr(sentence.begin))) {
      sentences.back().end = sentence.end;
    } else {
      sentences.push_back(sentence);
    }
  }
  return sentences;
}

/// Returns true if no sentence ends where ICU sees a border: between a text and what stands behind it.
bool SentenceSplitter::is_within_sentence(std::string_view before, std::string_view behind) const {
  const UChar32 next = character_at(behind, 0);
  if (is_small_letter(next) || is_item_number(before) || is_quoted_in_japanese(before, next)) return true;
  if (before.back() != '.') return false;
  before.remove_suffix(1);
  const std::string_view word = last_word(before);
  if (word.empty() || !stands_alone(before, word)) return false;
  const bool is_one_letter = next_character(word, 0) == word.size() && u_isalpha(character_at(word, 0)) != 0;
  if (is_one_letter) return true;
  if (has_ordinals_with_full_stop(language_)) {
    constexpr size_t kLongestOrdinal = 2;
    if (all_are(word, is_roman_digit) || (all_are(word, is_digit) && word.size() <= kLongestOrdinal)) return true;
  }
  return is_abbreviation(language_, word, is_digit(next));
}

}  // namespace lacuna::document
