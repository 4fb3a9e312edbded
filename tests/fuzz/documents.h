#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../document/sample_document.h"
#include "base/files.h"
#include "fuzz.h"

namespace lacuna {

/// Returns a translation that no model need be able to give: words that come again, links that cross and lead nowhere, signs of formats.
inline document::LinkedText hostile_translation(const std::string& text, uint32_t& draw) {
  static const char* const kWords[] = {"X1", "<b>", "&amp;", "-->", "\n", "\0010\001", "Wort", "\xe6\xb8\xa9", "."};
  const auto next = [&draw](uint32_t below) {
    draw = draw * 1664525 + 1013904223;
    return (draw >> 8) % below;
  };
  document::LinkedText translation;
  const auto num_src = static_cast<uint32_t>(document::words_of(text).size());
  for (uint32_t i = next(12); i > 0; --i)
    translation.text.append(translation.text.empty() ? "" : " ").append(kWords[next(std::size(kWords))]);
  const auto num_tgt = static_cast<uint32_t>(document::words_of(translation.text).size());
  if (num_src > 0 && num_tgt > 0)
    for (uint32_t i = next(12); i > 0; --i)
      translation.links.emplace_back(static_cast<int32_t>(next(num_src)), static_cast<int32_t>(next(num_tgt)));
  return translation;
}

inline std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// Translates the document that an input is, by `document_of(text, how)`: with translations that are their sources, what comes out is what
/// went in, but for spaces, if `is_faithful`; with hostile ones, the code returns.
template <class DocumentOf>
int fuzz_documents(const uint8_t* data, size_t size, const DocumentOf& document_of, bool is_faithful) {
  return fuzz(data, size, [&](std::string_view input) {
    constexpr char kMark = '\x01';  // which is left out of texts
    if (first_invalid_utf8(input) || input.find(kMark) != std::string_view::npos) return;
    document::Splitting how = document::english();
    how.longest = 40;
    const auto made = document_of(input, how);
    const document::Document::Translated back = document::translated_by(*made, document::same);
    if (is_faithful && without_spaces(back.text.text) != without_spaces(std::string(input))) __builtin_trap();
    auto draw = static_cast<uint32_t>(size);
    for (int i = 0; i < 3; ++i)
      document::translated_by(*made, [&draw](const std::string& text) { return hostile_translation(text, draw); });
  });
}

}  // namespace lacuna
