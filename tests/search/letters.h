#pragma once

#include "text/vocabulary.h"

namespace lacuna {

inline constexpr int64_t kLetterVocabulary = 13;

/// A vocabulary in which the letters a to j have the ids 3 to 12.
inline Vocabularies letters() {
  const VocabularyPtr vocabulary = token_list_from_bytes("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "letters");
  return {vocabulary, vocabulary};
}

}  // namespace lacuna
