#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Returns true if most characters are Han or kana: such lines have no spaces between words, and tokenizers like BLEU's
/// 13a would take sentences for words. They need not be valid UTF-8.
bool has_no_spaces_between_words(const std::vector<std::string>& lines);

/// Returns true if the line is all spaces (ASCII's, U+00A0, U+3000), in which SentencePiece finds no pieces.
bool is_blank(std::string_view line);

}  // namespace lacuna
