#include "text/joiner.h"

#include <algorithm>

namespace lacuna {
namespace {

/// Calls f(piece, true if the next piece belongs to the same word) for each space-separated piece.
template <class F>
void for_each_piece(std::string_view text, std::string_view joiner, F f) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    f(piece, !joiner.empty() && piece.ends_with(joiner));
    begin = end + 1;
  }
}

}  // namespace

std::string joined(std::string_view text, std::string_view joiner) {
  std::string words;
  bool is_open = true;
  for_each_piece(text, joiner, [&](std::string_view piece, bool goes_on) {
    if (!is_open) words += ' ';
    words += piece.substr(0, piece.size() - (goes_on ? joiner.size() : 0));
    is_open = goes_on;
  });
  return words;
}

std::vector<int32_t> joined_words(std::string_view text, std::string_view joiner) {
  std::vector<int32_t> words;
  int32_t word = 0;
  bool is_open = false;
  for_each_piece(text, joiner, [&](std::string_view piece, bool goes_on) {
    if (!piece.empty()) words.push_back(word);
    if (piece.empty() ? is_open : !goes_on) ++word;  // an empty piece ends an open word
    is_open = goes_on;
  });
  words.push_back(is_open ? word + 1 : word);
  return words;
}

}  // namespace lacuna
