#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lacuna {

/// Space-separated words of a line.
inline int32_t count_words(std::string_view line) {
  int32_t words = 0;
  for (size_t i = 0; i < line.size(); ++i) words += line[i] != ' ' && (i == 0 || line[i - 1] == ' ');
  return words;
}

/// Index of the space-separated word of `line` that holds each byte of `starts` [n]; filled up to `size` entries with the number of words
/// (for eos).
inline std::vector<int32_t> words_at(std::string_view line, const std::vector<int32_t>& starts, size_t size) {
  std::vector<int32_t> word_of_byte(line.size() + 1);
  int32_t words = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != ' ' && (i == 0 || line[i - 1] == ' ')) ++words;
    word_of_byte[i] = words > 0 ? words - 1 : 0;
  }
  word_of_byte[line.size()] = words > 0 ? words - 1 : 0;
  std::vector<int32_t> result;
  result.reserve(size);
  for (const int32_t start : starts) result.push_back(word_of_byte[static_cast<size_t>(start)]);
  result.resize(size, words);
  return result;
}

}  // namespace lacuna
