#pragma once

#include <string>
#include <vector>

#include "document/document.h"

namespace lacuna::document {

/// How English is split for a model whose pieces are bytes.
inline Splitting english() {
  return {SentenceSplitter("en"), 1000, [](std::string_view text) { return std::ssize(text); }};
}

/// Returns a translation that is its source, each word linked with itself.
inline LinkedText same(const std::string& text) {
  LinkedText linked{text};
  for (int32_t i = 0; i < static_cast<int32_t>(words_of(text).size()); ++i) linked.links.emplace_back(i, i);
  return linked;
}

/// Translates the sentences of a document one by one.
template <class Translate>
Document::Translated translated_by(const Document& document, const Translate& translate) {
  std::vector<LinkedText> translations;
  for (const std::string& sentence : document.sentences()) translations.push_back(translate(sentence));
  return document.translated(translations);
}

}  // namespace lacuna::document
