#pragma once

#include <string>
#include <string_view>

namespace lacuna {

class Vocabulary;

/// Returns the line without characters that nobody sees and that mean nothing in a sentence: soft hyphens, word joiners,
/// byte order marks, invisible operators of formulas, marks of writing direction; U+0085 (next line) becomes a space.
/// The joiners U+200C and U+200D, U+034F and the zero-width space go only between characters of scripts in which they
/// mean nothing (Latin, Greek, Cyrillic, Hebrew, Chinese, ...): they shape letters in Persian and in Indic scripts, make
/// one emoji of several, and part words in Khmer or Thai. The line must be valid UTF-8.
std::string without_invisible_characters(std::string_view line);

/// Returns a source line as its vocabulary reads it: without invisible characters, or as it is for a token list, which
/// may have such tokens.
std::string source_text(const Vocabulary& src, std::string_view line);

}  // namespace lacuna
