#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Returns the codes of the languages that most characters belong to if these put no spaces between words, so that
/// tokenizers like BLEU's 13a would take sentences for words: "zh or ja", "th", "lo", "my", "km", "bo or dz"; else an
/// empty text. The lines need not be valid UTF-8.
std::string languages_without_spaces(const std::vector<std::string>& lines);

/// Returns true if the line is all spaces (ASCII's, U+00A0, U+3000), in which SentencePiece finds no pieces.
bool is_blank(std::string_view line);

}  // namespace lacuna
