#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Returns true if most characters of the lines are Han or kana: Chinese and Japanese have no spaces between words, so
/// that tokenizers which split at spaces, such as BLEU's 13a, take sentences for words. The lines need not be valid
/// UTF-8.
bool has_no_spaces_between_words(const std::vector<std::string>& lines);

/// Returns true if the line consists of spaces alone (ASCII's, U+00A0, U+3000), so that SentencePiece finds no pieces
/// in it.
bool is_blank(std::string_view line);

}  // namespace lacuna
