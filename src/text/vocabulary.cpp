#include "text/vocabulary.h"

namespace lacuna {

std::string vocabulary_difference(const Vocabulary& first, const Vocabulary& second, const std::string& side) {
  const std::string both = "their " + side + " vocabularies";
  if (first.size() != second.size())
    return both + " have " + std::to_string(first.size()) + " and " + std::to_string(second.size()) + " pieces";
  for (TokenId id = 0; id < first.size(); ++id)
    if (first.piece(id) != second.piece(id))
      return "piece " + std::to_string(id) + " of " + both + " is \"" + first.piece(id) + "\" and \"" + second.piece(id) + "\"";
  return "";
}

}  // namespace lacuna
