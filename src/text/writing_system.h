#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// True if most characters of the lines are Chinese or Japanese (Han, kana), which are written without spaces between words: what takes
/// words to end at spaces, as BLEU's tokenizer 13a does, then takes sentences for words. Other text is UTF-8, or anything.
bool has_no_spaces_between_words(const std::vector<std::string>& lines);

/// True if SentencePiece finds nothing in the line: it is of spaces alone, which are ASCII's, U+00A0 and U+3000.
bool is_blank(std::string_view line);

}  // namespace lacuna
