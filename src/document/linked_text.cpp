#include "document/linked_text.h"

#include <algorithm>

#include "document/characters.h"

namespace lacuna::document {

std::vector<Span> words_of(std::string_view text) {
  std::vector<Span> words;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ' ') continue;
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back({at, end});
    at = end;
  }
  return words;
}

void LinkedTextJoiner::Words::add(std::string_view text) {
  if (text.empty()) return;
  if (trimmed(text, {0, text.size()}).size() == 0) {
    is_in_word = false;
    return;
  }
  const std::vector<Span> words = words_of(text);
  count += static_cast<int32_t>(words.size());
  if (is_in_word && words.front().begin == 0) --count;
  is_in_word = words.back().end == text.size();
}

void LinkedTextJoiner::add_common(std::string_view text) {
  add_source(text);
  add_target(text);
}

void LinkedTextJoiner::add_target(std::string_view text) {
  tgt_.add(text);
  joined_.text += text;
}

void LinkedTextJoiner::add(std::string_view source, const LinkedText& translation) {
  for (const auto& [src, tgt] : translation.links) joined_.links.emplace_back(src_.next(source) + src, tgt_.next(translation.text) + tgt);
  add_source(source);
  add_target(translation.text);
}

}  // namespace lacuna::document
