#pragma once

#include <string_view>

namespace lacuna::document {

/// Returns true if a full stop behind the word usually does not end a sentence. `language` is a code of two letters; some words count in
/// all languages, and some (No., Fig.) before a digit alone. A capital letter of ASCII at the beginning counts as a small one.
bool is_abbreviation(std::string_view language, std::string_view word, bool is_before_digit);

/// Returns true if a number with a full stop is an ordinal in the language ("am 3. Mai").
bool has_ordinals_with_full_stop(std::string_view language);

}  // namespace lacuna::document
