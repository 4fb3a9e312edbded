#pragma once

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cstdint>
#include <string_view>

#include "document/span.h"

/// Characters of UTF-8 text, by ICU. A damaged one counts as U+FFFD.
namespace lacuna::document {

inline const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

/// Returns the character that begins at `at`; U+FFFD at the end.
inline UChar32 character_at(std::string_view text, size_t at) {
  if (at >= text.size()) return 0xFFFD;
  UChar32 character = 0;
  auto i = static_cast<int32_t>(at);
  U8_NEXT_OR_FFFD(bytes_of(text), i, static_cast<int32_t>(text.size()), character);
  return character;
}

/// Returns the character that ends at `at`; U+FFFD at the beginning.
inline UChar32 character_before(std::string_view text, size_t at) {
  if (at == 0) return 0xFFFD;
  UChar32 character = 0;
  auto i = static_cast<int32_t>(at);
  U8_PREV_OR_FFFD(bytes_of(text), 0, i, character);
  return character;
}

/// Returns where the character that begins at `at` ends.
inline size_t next_character(std::string_view text, size_t at) {
  auto i = static_cast<int32_t>(at);
  U8_FWD_1(bytes_of(text), i, static_cast<int32_t>(text.size()));
  return static_cast<size_t>(i);
}

/// Returns where the character that ends at `at` begins.
inline size_t previous_character(std::string_view text, size_t at) {
  auto i = static_cast<int32_t>(at);
  U8_BACK_1(bytes_of(text), 0, i);
  return static_cast<size_t>(i);
}

/// Returns true for white space, line breaks and the byte order mark, which separate words or are nothing.
inline bool is_space(UChar32 character) {
  constexpr UChar32 kByteOrderMark = 0xFEFF;
  return u_isUWhiteSpace(character) != 0 || character == kByteOrderMark;
}

/// Returns the span without white space at both ends; an empty one at its beginning if it has nothing else.
inline Span trimmed(std::string_view text, Span span) {
  const size_t begin = span.begin;
  while (span.end > begin && is_space(character_before(text, span.end))) span.end = previous_character(text, span.end);
  while (span.begin < span.end && is_space(character_at(text, span.begin))) span.begin = next_character(text, span.begin);
  return span.size() == 0 ? Span{begin, begin} : span;
}

}  // namespace lacuna::document
